// The search when the site is read from a folder: browsers start no worker from file:, so a hidden frame plays one.
// The theme would fetch such a script from elsewhere if there were none whose name has "iframe-worker" in it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = new Promise((loaded, failed) => {
        const script = this.inside.document.createElement("script");
        script.onload = loaded;
        script.onerror = () => failed(new Error(`cannot load ${url}`));
        script.src = url;
        this.inside.document.body.append(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
