//go:build browser

package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// These tests open pages in a real Chromium without a window: go test -tags browser ./report/page. ACKPROOF_REPORTS names further pages, separated as in PATH, that are
// opened like the made-up ones.

// tab is a page in a browser and what it did that it should not.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []string // of anything but the page itself
	faults   []string // errors on the console, exceptions
}

// chromium starts the browser; all tabs of a test share it.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium in PATH: install chromium to run this test")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))
	if os.Geteuid() == 0 { // its sandbox does not work for root
		options = append(options, chromedp.NoSandbox)
	}
	allocated, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return ctx
}

// open opens a file and waits until its picture is there.
func open(t *testing.T, browser context.Context, path, fragment, scheme string, width int64) *tab {
	t.Helper()
	tab := &tab{t: t}
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	tab.ctx = ctx
	url := "file://" + path
	if err := chromedp.Listen(ctx, func(ev any) {
		tab.mu.Lock()
		defer tab.mu.Unlock()
		switch e := ev.(type) {
		case *network.EventRequestWillBeSent:
			if plain, _, _ := strings.Cut(e.Request.URL, "#"); plain != url {
				tab.requests = append(tab.requests, e.Request.URL)
			}
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
				tab.faults = append(tab.faults, fmt.Sprintf("console: %s", e.Args[0].Value))
			}
		case *runtime.EventExceptionThrown:
			tab.faults = append(tab.faults, "exception: "+e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			tab.faults = append(tab.faults, "log: "+e.Entry.Text)
		}
	}); err != nil {
		t.Fatal(err)
	}
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	tab.must(err)
	_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	tab.must(err)
	_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	tab.must(err)
	tab.must(chromedp.Do(ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(url+fragment)))
	tab.wait(`document.getElementById("timeline").dataset.ready && document.getElementById("timeline").dataset.drew`)
	return tab
}

func (t *tab) must(err error) {
	t.t.Helper()
	if err != nil {
		t.t.Fatal(err)
	}
}

// wait waits until a script's expression is true.
func (t *tab) wait(expression string) {
	t.t.Helper()
	if _, err := chromedp.Run(t.ctx, chromedp.Poll[chromedp.Void]("!!("+expression+")", chromedp.WithPollingTimeout(60*time.Second))); err != nil {
		t.t.Fatalf("waiting for %s: %v; %v", expression, err, t.faults)
	}
}

func (t *tab) text(script string) string {
	t.t.Helper()
	s, err := chromedp.Run(t.ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	t.must(err)
	return s
}

func (t *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	t.t.Helper()
	t.must(chromedp.Do(t.ctx, actions...))
}

// quiet demands that nothing was asked for and nothing went wrong.
func (t *tab) quiet() {
	t.t.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.requests) > 0 || len(t.faults) > 0 {
		t.t.Errorf("requests %q, faults %q, expected none", t.requests, t.faults)
	}
}

const (
	details = `document.getElementById("details").innerText`
	extent  = `document.getElementById("range").textContent`
)

func save(t *testing.T, run *Run) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(written(t, run)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// reports are the page with harmful texts, one without an operation, and those of ACKPROOF_REPORTS.
func reports(t *testing.T) map[string]string {
	empty := violated("nothing")
	empty.Proofs, empty.Events = nil, long(0).Events
	all := map[string]string{"harmful": save(t, violated("</script><img src=x onerror=alert(1)>\x1b[31m\xff")), "empty": save(t, empty)}
	for _, path := range filepath.SplitList(os.Getenv("ACKPROOF_REPORTS")) {
		full, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		all[path] = full
	}
	return all
}

func TestBrowserOpensEachReport(t *testing.T) {
	browser := chromium(t)
	for name, path := range reports(t) {
		for _, look := range []struct {
			scheme string
			width  int64
		}{{"light", 1280}, {"dark", 1280}, {"light", 390}, {"dark", 390}} {
			t.Run(fmt.Sprintf("%s/%s/%d", name, look.scheme, look.width), func(t *testing.T) {
				tab := open(t, browser, path, "", look.scheme, look.width)
				// The page keeps to its width, and the picture has its colours.
				if wide := tab.text(`String(document.documentElement.scrollWidth)`); wide != fmt.Sprint(look.width) {
					t.Errorf("the page is %s pixels wide, expected %d", wide, look.width)
				}
				if n := tab.text(`(() => { const c = document.getElementById("head"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
					return String(new Set(new Uint32Array(d.buffer)).size) })()`); n == "1" {
					t.Error("nothing is drawn")
				}
				tab.quiet()
			})
		}
	}
}

func TestBrowserFollowsDeepLinksAndZooms(t *testing.T) {
	browser := chromium(t)
	path := save(t, violated("plain"))
	tab := open(t, browser, path, "#op=4", "light", 1280)
	if got := tab.text(details); !strings.Contains(got, "Operation 4: append of 1 to p0, at offset 1; ok.") || !strings.Contains(got, "Process 1, node n1") {
		t.Errorf("the link to operation 4 shows %q", got)
	}
	near := tab.text(extent)
	tab.do(chromedp.Click(chromedp.CSS(`[data-do="all"]`)))
	tab.wait(extent + `.startsWith("0.000000")`)
	all := tab.text(extent)
	if near == all {
		t.Errorf("the link shows the whole run: %s", all)
	}
	tab.do(chromedp.Click(chromedp.CSS(`[data-do="in"]`)))
	tab.wait(extent + fmt.Sprintf(" !== %q", all))
	in := tab.text(extent)
	tab.do(chromedp.Focus(chromedp.CSS("#timeline")), chromedp.KeyEvent("0"))
	tab.wait(extent + fmt.Sprintf(" === %q", all))
	tab.do(chromedp.KeyEvent("+"))
	tab.wait(extent + fmt.Sprintf(" === %q", in))
	tab.text(`location.hash = "#t=0.001-0.002"`)
	tab.wait(extent + ` === "0.001000 s to 0.002000 s"`)
	for op, want := range map[int]string{
		2: "append of 1 to p0, at offset 0; ok.", 6: "fetch of p0 from 0, 2 records; ok.", 9: "append of 1 to p0; outcome unknown: it may have happened.", 12: "append of 1 to p0, at offset 1; ok.",
		16: "fetch of p0 from 0, 2 records; ok.", 18: "copy-read of p0 from 0, 2 records; ok.", 20: "fetch of p0 from 0; never ended.",
	} {
		tab.text(fmt.Sprintf(`location.hash = "#op=%d"`, op))
		tab.wait(fmt.Sprintf(`%s.includes("Operation %d: %s")`, details, op, want))
	}
	tab.text(`location.hash = "#op=999"`)
	tab.wait(details + `.includes("no operation 999")`)
	tab.quiet()
}

func TestBrowserOpensTheProof(t *testing.T) {
	browser := chromium(t)
	tab := open(t, browser, save(t, violated("plain")), "", "dark", 1280)
	tab.do(chromedp.Click(chromedp.CSS(`.claims a[href="#proof-1"]`)))
	tab.wait(`document.querySelector("#proof-1:target svg .arrow")`)
	tab.do(chromedp.Click(chromedp.CSS(`#proof-1 a[href="#op=4"]`)))
	tab.wait(details + `.includes("Operation 4:")`)
	tab.do(chromedp.Click(chromedp.CSS(`[data-do="proof"]`)))
	tab.wait(details + `.includes("Operation 16:")`)
	tab.do(chromedp.Click(chromedp.CSS(`#proof-1 summary`)))
	tab.wait(`document.getElementById("certificate-1").innerText.includes('"anomaly": "lost-acked"')`)
	tab.do(chromedp.Click(chromedp.CSS(`#proof-1 .copy`)))
	tab.wait(`["Copied", "Selected"].includes(document.querySelector("#proof-1 .copy").textContent)`)
	tab.quiet()
}

// TestBrowserLetsNothingOut tries to make the page ask a server: the policy has to forbid it.
func TestBrowserLetsNothingOut(t *testing.T) {
	browser := chromium(t)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	tab := open(t, browser, save(t, violated("plain")), "", "light", 1280)
	got := tab.text(fmt.Sprintf(`new Promise(done => {
		const refused = [];
		document.addEventListener("securitypolicyviolation", e => { refused.push(e.effectiveDirective); if (refused.length === 3) done(refused.sort().join(" ")); });
		const add = (tag, set) => document.body.append(Object.assign(document.createElement(tag), set));
		add("img", { src: %[1]q });
		add("script", { textContent: "document.title = 'run'" });
		fetch(%[1]q).catch(() => {});
	})`, server.URL))
	if got != "connect-src img-src script-src-elem" || asked.Load() != 0 || tab.text("document.title") == "run" {
		t.Errorf("refused: %s; the server was asked %d times", got, asked.Load())
	}
}

// TestBrowserShowsAMillionOperations prints what a long run costs: size, time to open, time to draw while panning. The machine decides how good the figures are, so
// none is demanded.
func TestBrowserShowsAMillionOperations(t *testing.T) {
	const n = 1_000_000
	browser := chromium(t)
	path := save(t, long(n))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	tab := open(t, browser, path, "", "light", 1280)
	ready := tab.text(`document.getElementById("timeline").dataset.ready`)
	pan := func(zooms int) string {
		return tab.text(fmt.Sprintf(`(async () => {
			const box = document.getElementById("timeline"), key = k => box.dispatchEvent(new KeyboardEvent("keydown", { key: k })), drew = [];
			const frame = () => new Promise(next => requestAnimationFrame(() => setTimeout(next)));
			key("0");
			for (let i = 0; i < %d; i++) key("+");
			await frame();
			for (let i = 0; i < 60; i++) { key(i %% 20 < 10 ? "ArrowRight" : "ArrowLeft"); await frame(); drew.push(Number(box.dataset.drew)); }
			drew.sort((a, b) => a - b);
			return drew[30] + " ms, 95 %%: " + drew[57] + " ms";
		})()`, zooms))
	}
	t.Logf("%d operations, %.1f MB, %.2f bytes each; ready %s ms after the page was asked for", n, float64(info.Size())/1e6, float64(info.Size())/n, ready)
	for _, zooms := range []int{0, 4, 10} {
		t.Logf("a frame while panning, zoomed in %d times: %s", zooms, pan(zooms))
	}
	tab.text(`location.hash = "#op=1000001"`)
	tab.wait(details + `.includes("Operation 1000001:")`)
	tab.quiet()
}
