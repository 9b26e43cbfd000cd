// Checks of the page as it is now.  Each gives a list of faults, as words.
(() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const colours = new Map();
    const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true, contentVisibilityAuto: true });
    const CONTROLS = 'button, select, input, textarea, a[href], summary, [tabindex]:not([tabindex="-1"]), [role=treeitem]';

    function name(element) {
        return `${element.tagName.toLowerCase()}${element.id ? `#${element.id}` : ''}${element.className && element.className.baseVal === undefined ? `.${element.className.replaceAll(' ', '.')}` : ''} ` +
               `"${(element.getAttribute('aria-label') ?? element.textContent ?? '').trim().slice(0, 40)}"`;
    }

    function rgba(text) {
        if (!colours.has(text)) {
            canvas.clearRect(0, 0, 1, 1);
            canvas.fillStyle = text;
            canvas.fillRect(0, 0, 1, 1);
            const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
            colours.set(text, [r, g, b, a / 255]);
        }
        return colours.get(text);
    }

    const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3]));

    function background(element) {
        const layers = [];
        for (let at = element; at; at = at.parentElement) {
            const colour = rgba(getComputedStyle(at).backgroundColor);
            layers.push(colour);
            if (colour[3] === 1)
                break;
        }
        return layers.reverse().reduce((below, layer) => over(layer, below), rgba(getComputedStyle(document.documentElement).colorScheme === 'dark' ? '#121212' : '#ffffff'));
    }

    function luminance(colour) {
        const [r, g, b] = colour.slice(0, 3).map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    }

    function contrast(element, colour, opacity = 1) {
        const back = background(element), front = rgba(colour);
        for (let at = element; at; at = at.parentElement)
            opacity *= Number(getComputedStyle(at).opacity);
        const [light, dark] = [luminance(over([...front.slice(0, 3), front[3] * opacity], back)), luminance(back)].sort((a, b) => b - a);
        return (light + 0.05) / (dark + 0.05);
    }

    // With a dialog open, all else is behind it.
    const root = () => document.querySelector('dialog[open]') ?? document.body;
    const isDisabled = (element) => element.closest(':disabled, [aria-disabled=true]');
    const isHidden = (element) => element.closest('.off-screen, .sprite, .skip');
    const isInert = (element) => element.closest('[inert]');

    function checkContrast() {
        const faults = new Map(), walker = document.createTreeWalker(root(), NodeFilter.SHOW_TEXT);
        let least = 21, texts = 0;
        const judge = (element, ratio, needed, what) => {
            least = Math.min(least, ratio);
            texts++;
            if (ratio < needed - 0.005)
                faults.set(`${ratio.toFixed(2)} < ${needed}: ${what} of ${name(element)}`, 1);
        };
        for (let node; (node = walker.nextNode()) && texts < 3000; ) {
            const element = node.parentElement;
            if (!node.textContent.trim() || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'OPTION', 'TITLE'].includes(element.tagName) || !shown(element) ||
                isDisabled(element) || isHidden(element))
                continue;
            const style = getComputedStyle(element), size = parseFloat(style.fontSize);
            const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
            judge(element, contrast(element, style.color), large ? 3 : 4.5, 'text');
        }
        for (const field of root().querySelectorAll('input, textarea')) {
            if (!shown(field) || !field.placeholder || field.value || isHidden(field))
                continue;
            const style = getComputedStyle(field, '::placeholder');
            judge(field, contrast(field, style.color, Number(style.opacity)), 4.5, 'placeholder');
        }
        for (const icon of root().querySelectorAll('svg.icon'))
            if (shown(icon) && !isDisabled(icon) && !icon.closest('[aria-pressed=false]'))
                judge(icon.parentElement, contrast(icon.parentElement, getComputedStyle(icon).color), 3, 'icon');
        return { faults: [...faults.keys()], least, texts };
    }

    // Elements that scroll sideways are on purpose; the page itself, and what cuts its content, are not.
    function checkOverflow() {
        // On a phone, innerWidth grows with what reaches beyond it.
        const faults = [], width = Math.round(visualViewport.width * visualViewport.scale), { scrollWidth, scrollHeight } = document.documentElement;
        if (scrollWidth > width || document.body.scrollWidth > width)
            faults.push(`the page is ${Math.max(scrollWidth, document.body.scrollWidth)} px wide`);
        if (scrollHeight > Math.round(visualViewport.height * visualViewport.scale))
            faults.push(`the page is ${scrollHeight} px high`);
        for (const element of document.body.querySelectorAll('*')) {
            if (!shown(element) || isHidden(element) || element.closest('svg, canvas'))
                continue;
            const style = getComputedStyle(element), box = element.getBoundingClientRect();
            let clip = element.parentElement;
            while (clip && !/auto|scroll/.test(getComputedStyle(clip).overflowX))
                clip = clip.parentElement;
            if (!clip && box.width && (box.right > width + 1 || box.left < -1))
                faults.push(`${name(element)} reaches from ${box.left.toFixed()} to ${box.right.toFixed()}`);
            if (/hidden|clip/.test(style.overflowX) && !element.matches('input, select, textarea') && style.textOverflow !== 'ellipsis' && element.scrollWidth > element.clientWidth + 1)
                faults.push(`${name(element)} cuts ${element.scrollWidth - element.clientWidth} px of its content`);
        }
        const scroll = document.getElementById('scroll');
        if (shown(scroll) && scroll.scrollWidth > scroll.clientWidth + 1)
            faults.push('the conversation can be moved sideways');
        return [...new Set(faults)];
    }

    function controls() {
        return [...root().querySelectorAll(CONTROLS)].filter((element) => shown(element) && !isDisabled(element) && !isInert(element) && !isHidden(element) &&
                                                                          element.getClientRects().length);
    }

    // A smaller target is good as well if a circle of that size around its middle meets no other one.
    function checkTargets(least) {
        const faults = [], all = controls().filter((element) => !element.matches('#scroll, .row, .table, pre, canvas, [role=listbox]'));
        const place = (element) => element.closest('header, #scroll, .side, .history, .live, .composer, dialog');
        const boxes = all.map((element) => (element.closest('label') ?? element).getBoundingClientRect());
        all.forEach((element, at) => {
            const box = boxes[at], x = box.x + box.width / 2, y = box.y + box.height / 2;
            if (element.matches('p a, li a, td a, h3 a') || (box.width >= least - 0.5 && box.height >= least - 0.5))
                return;
            const near = boxes.findIndex((other, index) => index !== at && place(all[index]) === place(element) && !all[index].contains(element) && !element.contains(all[index]) &&
                Math.hypot(Math.max(other.left - x, x - other.right, 0), Math.max(other.top - y, y - other.bottom, 0)) < least / 2);
            if (near >= 0)
                faults.push(`${name(element)} is ${box.width.toFixed()} x ${box.height.toFixed()}, close to ${name(all[near])}`);
        });
        return [...new Set(faults)];
    }

    // Is the middle of each control of the view at the top, so that it can be hit?
    function checkCovered() {
        const faults = [];
        for (const element of controls()) {
            const box = element.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
            if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight || element.matches('#scroll, .row, .table'))
                continue;
            let clipped = false;
            for (let at = element.parentElement; at; at = at.parentElement) {
                const clip = at.getBoundingClientRect();
                clipped ||= getComputedStyle(at).overflow !== 'visible' && (y < clip.top || y > clip.bottom || x < clip.left || x > clip.right);
            }
            const top = document.elementFromPoint(x, y);
            if (!clipped && top && !element.contains(top) && !top.contains(element) && !top.closest('.toasts, .to-end') &&
                top.closest('label') !== element.closest('label'))
                faults.push(`${name(element)} is below ${name(top)}`);
        }
        return faults;
    }

    // What a focus changes to the eye.
    function look(element) {
        const words = [];
        for (let at = element, depth = 0; at && depth < 4; at = at.parentElement, depth++) {
            const { outlineStyle, outlineWidth, outlineColor, borderTopColor, boxShadow, backgroundColor } = getComputedStyle(at);
            words.push(outlineStyle === 'none' ? '' : `${outlineStyle} ${outlineWidth} ${outlineColor}`, borderTopColor, boxShadow, backgroundColor);
        }
        return words.join('|');
    }

    const visited = [];
    // To be called after each Tab: false at the end of the round.
    async function tabbed() {
        const element = document.activeElement;
        if (!element || element === document.body)
            return true; // the browser's own controls are there
        if (visited.some((each) => each.element === element))
            return false;
        const isInView = () => {
            const box = element.getBoundingClientRect();
            return box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
        };
        const found = { element, look: look(element), inView: isInView() };
        visited.push(found);
        if (!found.inView) {
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            found.inView = isInView();
        }
        return true;
    }

    function checkTabbed() {
        const faults = [], seen = new Set(visited.map(({ element }) => element));
        document.activeElement?.blur();
        for (const element of controls())
            if (!seen.has(element) && element.tabIndex >= 0 && element.type !== 'file')
                faults.push(`no Tab leads to ${name(element)}`);
        let last = null;
        for (const each of visited) {
            if (look(each.element) === each.look)
                faults.push(`the focus is not seen at ${name(each.element)}`);
            if (!each.inView)
                faults.push(`${name(each.element)} has the focus out of view`);
            if (last && !last.contains(each.element) && !each.element.contains(last) && !(last.compareDocumentPosition(each.element) & Node.DOCUMENT_POSITION_FOLLOWING))
                faults.push(`${name(each.element)} comes before ${name(last)} in the page, and after it by Tab`);
            last = each.element;
        }
        const count = visited.length;
        visited.length = 0;
        return { faults, count };
    }

    window.measure = { checkContrast, checkOverflow, checkTargets, checkCovered, tabbed, checkTabbed };
})();
