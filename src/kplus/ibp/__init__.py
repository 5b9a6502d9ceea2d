"""The Indian buffet process: MEIBP, IBPVariational, and IBPGibbs in `gibbs/`."""
