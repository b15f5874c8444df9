"""What runs inside a zygote and its caged children: the standard library and these files, nothing else."""
