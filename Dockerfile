# taskpriors for the CPU:  docker build -t taskpriors . && docker run --rm taskpriors rank
# Ranks files of a folder:  docker run --rm -v "$PWD:/work" taskpriors rank --models a.npy b.npy
# TORCH is a folder of torch's wheels; --build-arg TORCH=https://download.pytorch.org/whl/cu126 has CUDA.
FROM python:3.12-slim
ARG TORCH=https://download.pytorch.org/whl/cpu
RUN pip install --no-cache-dir torch torchvision --index-url "$TORCH"
COPY . /source
RUN pip install --no-cache-dir "/source[data,remote,references]" && rm -r /source
ENV TASKPRIORS_CACHE=/cache HF_HOME=/cache/huggingface MPLCONFIGDIR=/tmp/matplotlib
VOLUME /cache
WORKDIR /work
ENTRYPOINT ["taskpriors"]
