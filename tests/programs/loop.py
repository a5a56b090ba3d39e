"""A training loop as PyTorch's own pages have it: each batch in parts whose gradients add up. Nothing in it is Ringmaster's."""

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
inputs = torch.randn(48, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
for batch in DataLoader(data, batch_size=12, shuffle=True):
    for x, y in zip(batch[0].split(3), batch[1].split(3)):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
print("weights", sum(float(p.sum()) for p in model.parameters()))
