export function showLive() {}
export function hideLive() {}
