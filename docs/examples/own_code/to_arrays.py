"""A small CNN's weights as arrays, with PyTorch alone: writes `cnn.npz`."""

import numpy as np
import torch

model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 8, 5),  # [1, 28, 28] to [8, 24, 24]
    torch.nn.ReLU(),
    torch.nn.MaxPool2d(2),  # to [8, 12, 12]
    torch.nn.Flatten(),
    torch.nn.Linear(8 * 12 * 12, 10),
)
# Train it here, or load what was trained.
weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
images = torch.rand(3, 1, 28, 28)
with torch.no_grad():
    scores = model(images)  # By which the other model is checked.
np.savez("cnn.npz", images=images.numpy(), scores=scores.numpy(), **weights)
