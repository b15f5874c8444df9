import torch
from transformers import logging

logging.set_verbosity_error()
torch.set_num_threads(1)
