// A page that was opened from a folder may start no worker, so the theme's search runs in a hidden frame there instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      this.waiting = []
      inside.document.open()
      inside.document.write("<!doctype html><title>search</title><body></body>")
      inside.document.close()
      inside.postMessage = data => {
        const event = new MessageEvent("message", { data })
        this.dispatchEvent(event)
        if (typeof this.onmessage === "function") this.onmessage(event)
      }
      const base = new URL(url, location.href)
      const load = source => new Promise((done, failed) => {
        const script = inside.document.createElement("script")
        script.src = new URL(source, base).href
        script.onload = done
        script.onerror = failed
        inside.document.body.appendChild(script)
      })
      inside.importScripts = (...sources) => sources.reduce((before, one) => before.then(() => load(one)), Promise.resolve())
      load(base).then(() => {
        const waited = this.waiting
        this.waiting = null
        waited.forEach(data => this.postMessage(data))
      })
    }
    postMessage(data) {
      const inside = this.frame.contentWindow
      if (this.waiting) this.waiting.push(data)
      else inside.dispatchEvent(new inside.MessageEvent("message", { data }))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
