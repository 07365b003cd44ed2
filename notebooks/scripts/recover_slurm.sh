#!/bin/bash
#SBATCH --job-name=recover
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=240
#SBATCH --requeue
#SBATCH --open-mode=append

# One task per machine: it is torchrun's agent, and starts a rank for each GPU.
# Submit from the folder of the course: sbatch notebooks/scripts/recover_slurm.sh CHECKPOINTS
set -euo pipefail

host=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)
port=$((20000 + SLURM_JOB_ID % 10000))
export PYTHONPATH=. OMP_NUM_THREADS=1 TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1

srun python -m torch.distributed.run \
    --nnodes="$SLURM_JOB_NUM_NODES" \
    --nproc-per-node="$SLURM_GPUS_ON_NODE" \
    --rdzv-backend=c10d \
    --rdzv-endpoint="$host:$port" \
    --rdzv-id="$SLURM_JOB_ID" \
    --max-restarts=3 \
    notebooks/scripts/recover_train.py "${1:?which folder shall hold the checkpoints?}"
