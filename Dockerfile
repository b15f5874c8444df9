# redqueen on a CPU, from a clone: docker build -t redqueen .
# docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" redqueen train maths
# Docker's own settings suffice: `docker run --rm redqueen doctor` says that the sandbox is full.
FROM python:3.11-slim
WORKDIR /src
COPY constraints.txt ./
RUN pip install --no-cache-dir --no-deps --index-url https://download.pytorch.org/whl/cpu \
        "$(grep '^torch==' constraints.txt)"
COPY pyproject.toml README.md LICENSE ./
COPY configs configs
COPY docs docs
COPY experiments experiments
COPY src src
RUN pip install --no-cache-dir -c constraints.txt ".[logic,dashboard]"
WORKDIR /work
ENTRYPOINT ["redqueen"]
CMD ["presets"]
