"""The parts of tools/real-server-check. Python 3.8 or newer, nothing else."""
