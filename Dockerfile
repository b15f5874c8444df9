# redqueen on a CPU, from a clone: docker build -t redqueen . ; the sandbox needs user namespaces, or it is weaker:
# docker run --rm -v "$PWD/runs:/work/runs" --security-opt seccomp=unconfined redqueen train maths
FROM python:3.12-slim
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY configs configs
COPY docs docs
COPY experiments experiments
COPY src src
RUN pip install --no-cache-dir -c constraints.txt --index-url https://download.pytorch.org/whl/cpu \
        "$(grep '^torch==' constraints.txt)" \
    && pip install --no-cache-dir -c constraints.txt .
WORKDIR /work
ENTRYPOINT ["redqueen"]
CMD ["presets"]
