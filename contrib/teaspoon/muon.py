"""The optimizers: Muon for matrices, AdamW for everything else.

Muon (Keller Jordan, 2024) takes the momentum of a matrix and makes all its singular values about
one before it steps along it, by five rounds of an odd polynomial (Newton-Schulz), which needs
products of matrices only. Matrices of one shape go through it together.
"""
import collections

import torch


def orthogonal(stack):
    """Each matrix of a stack (n, rows, columns) with its singular values brought near to one."""
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = stack.shape[1] > stack.shape[2]
    x = stack.transpose(1, 2) if tall else stack
    x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)).bfloat16()
    for _ in range(5):
        square = x @ x.transpose(1, 2)
        x = a * x + (b * square + c * square @ square) @ x
    return (x.transpose(1, 2) if tall else x).float()


class Muon(torch.optim.Optimizer):
    def __init__(self, matrices, lr, momentum=0.95, decay=0.0):
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            alike = collections.defaultdict(list)
            for weight in group["params"]:
                alike[weight.shape].append(weight)
            for shape, weights in alike.items():
                self.together(group, shape, weights)

    def together(self, group, shape, weights):
        moved = []
        for weight in weights:
            state = self.state[weight]
            if not state:
                state["momentum"] = torch.zeros_like(weight)
            state["momentum"].lerp_(weight.grad, 1 - group["momentum"])
            moved.append(weight.grad.lerp(state["momentum"], group["momentum"]))
        # So scaled, a step is as large as one of AdamW's: about 0.2 in each number, times lr.
        size = 0.2 * max(shape) ** 0.5
        for weight, step in zip(weights, orthogonal(torch.stack(moved))):
            weight.mul_(1 - group["lr"] * group["decay"]).sub_(step, alpha=group["lr"] * size)


def optimizers(model, kind, lr, decay):
    """What steps the model. Each has its parameters' full rate as "peak" for the schedule."""
    layers = [w for w in model.layers.parameters() if w.dim() == 2]
    norms = [w for w in model.parameters() if w.dim() == 1]
    plain = [{"params": [model.embedding], "weight_decay": 0.0},
             {"params": norms, "weight_decay": 0.0}]
    if kind == "adamw":
        plain.append({"params": layers, "weight_decay": decay})
    made = [torch.optim.AdamW(plain, lr=lr, betas=(0.9, 0.95), eps=1e-10, fused=True)]
    if kind == "muon":
        made.append(Muon(layers, lr=lr, decay=decay))
    for optimizer in made:
        for group in optimizer.param_groups:
            group["peak"] = lr
    return made
