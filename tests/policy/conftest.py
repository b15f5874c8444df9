import sys
from pathlib import Path

import torch
from transformers import logging

sys.path.insert(0, str(Path(__file__).parent))
logging.set_verbosity_error()
torch.set_num_threads(1)
