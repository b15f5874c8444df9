"""The code that runs inside a zygote and its caged children. It imports the standard library and nothing else."""
