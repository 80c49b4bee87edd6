package browse

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"ackproof/model"
)

// shelf is a store of made-up runs.
type shelf []Entry

func (s shelf) Runs() ([]Entry, error) { return s, nil }

func (s shelf) Page(w io.Writer, name string) error {
	if name == "log/bad" {
		return errors.New("history.bin is cut off <b>here</b>\x1b[31m")
	}
	_, err := fmt.Fprintf(w, "the page of %s", name)
	return err
}

func (s shelf) Open(name, file string) (fs.File, error) {
	return fstest.MapFS{"log/1/certificates/a.json": {Data: []byte("{}")}, "log/1/porcupine/a.html": {Data: []byte("porcupine's")}, "log/1/nodes/1/log.json": {Data: []byte("secret")}}.Open(name + "/" + file)
}

func entry(name string, seed int64, v model.Verdict, claims ...model.ClaimResult) Entry {
	return Entry{Name: name, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Results: model.Results{Version: 1, Seed: seed, Verdict: v, Workload: "log",
		System: model.SystemInfo{Name: "reference", Version: "abc"}, Claims: claims, Faults: []model.FaultResult{{Kind: "kill", Effective: true}, {Kind: "pause"}}, Seconds: model.Seconds{Load: 30}}}
}

func stocked() shelf {
	lost := model.ClaimResult{ID: model.NoLoss, Verdict: model.Violated, Anomalies: []model.AnomalyResult{{Kind: model.LostAcked, Count: 3}}}
	return shelf{
		entry("log/2", 8, model.Violated, lost, model.ClaimResult{ID: model.Order, Verdict: model.Held}),
		entry("log/1", 7, model.Held, model.ClaimResult{ID: model.NoLoss, Verdict: model.Held}),
		{Name: "log/bad", Damage: "log/bad: results.json: byte 3: <script>alert(1)</script>\x1b[31m\xff"},
		entry(`log/a b#?<i>"`, 9, model.Undecided),
	}
}

func get(t *testing.T, s Store, target, host string) (int, http.Header, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = host
	w := httptest.NewRecorder()
	Handler(s).ServeHTTP(w, r)
	return w.Code, w.Header(), w.Body.String()
}

func TestTheListHasEveryRunAndWhatIsWrongWithIt(t *testing.T) {
	code, head, body := get(t, stocked(), "/", "127.0.0.1:80")
	if code != 200 || !strings.Contains(head.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Fatalf("%d %v", code, head)
	}
	for _, want := range []string{"4 of 4, 1 cannot be read", `href="/run/log/2/report.html"`, "no-loss, 1 held", "1 of 2: kill", "2026-01-02 03:04:05", "30 s", "✘ violated",
		"! damaged", `byte 3: &lt;script&gt;alert(1)&lt;/script&gt;\x1b[31m\xff`, `href="/run/log/a%20b%23%3F%3Ci%3E%22/report.html"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the list lacks %q:\n%s", want, body)
		}
	}
	for _, bad := range []string{"<script", "\x1b", "\xff", "<i>"} {
		if strings.Contains(body, bad) {
			t.Errorf("the list contains %q", bad)
		}
	}
}

// The policy allows the style sheet that the pages have, and nothing else: otherwise they would be bare.
func TestThePolicyAllowsTheStyle(t *testing.T) {
	for _, target := range []string{"/", "/compare?before=log/1&now=log/2", "/run/log/bad/report.html"} {
		_, head, body := get(t, stocked(), target, "localhost")
		_, rest, _ := strings.Cut(body, "<style>")
		style, _, ok := strings.Cut(rest, "</style>")
		sum := sha256.Sum256([]byte(style))
		if want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !ok || len(style) < 1000 || !strings.Contains(head.Get("Content-Security-Policy"), want) {
			t.Errorf("%s: the policy is %s, expected %s for %d bytes", target, head.Get("Content-Security-Policy"), want, len(style))
		}
	}
}

func TestTheListIsNarrowed(t *testing.T) {
	for query, want := range map[string]string{
		"verdict=violated":              "1 of 4",
		"verdict=damaged":               "1 of 4",
		"text=lost-acked":               "1 of 4",
		"text=seed+7":                   "1 of 4",
		"text=KILL":                     "3 of 4",
		"system=reference&workload=log": "3 of 4",
		"system=kafka":                  "0 of 4",
		"from=-3":                       "4 of 4",
	} {
		if _, _, body := get(t, stocked(), "/?"+query, "localhost"); !strings.Contains(body, want) {
			t.Errorf("%s: expected %s:\n%s", query, want, body)
		}
	}
}

func TestALongListHasParts(t *testing.T) {
	var many shelf
	for i := range perPage + 10 {
		many = append(many, entry(fmt.Sprintf("log/%03d", i), int64(i), model.Held))
	}
	_, _, body := get(t, many, "/?verdict=held", "localhost")
	if !strings.Contains(body, `/?from=200&amp;verdict=held`) || strings.Contains(body, "log/200/") || !strings.Contains(body, "log/199/") {
		t.Error("the first part is not the first 200 with a link to the rest")
	}
	_, _, body = get(t, many, "/?from=200", "localhost")
	if !strings.Contains(body, "log/209/") || !strings.Contains(body, "newer runs") || strings.Contains(body, "older runs") {
		t.Error("the second part is not the rest")
	}
}

func TestTwoRunsSideBySide(t *testing.T) {
	code, _, body := get(t, stocked(), "/compare?before=log/1&now=log/2", "[::1]:80")
	flat := strings.Join(strings.Fields(body), " ")
	if code != 200 || !strings.Contains(flat, "lost-acked") || !strings.Contains(flat, "<strong>new</strong>") {
		t.Errorf("%d %s", code, body)
	}
	code, _, body = get(t, stocked(), "/compare?before=log/2&now=log/1", "localhost")
	if code != 200 || !strings.Contains(body, "not seen this time, which does not prove it fixed") {
		t.Errorf("%d %s", code, body)
	}
	for query, want := range map[string]int{"before=log/1": 400, "before=log/1&now=log/9": 404, "before=log/1&now=log/bad": 422} {
		if code, _, _ := get(t, stocked(), "/compare?"+query, "localhost"); code != want {
			t.Errorf("%s: %d, expected %d", query, code, want)
		}
	}
}

func TestOnlyThePagesOfARunAreServed(t *testing.T) {
	for path, want := range map[string]int{
		"log/1/report.html": 200, "log/bad/report.html": 422, "log/1/certificates/a.json": 200, "log/1/certificates/b.json": 404, "log/1/porcupine/a.html": 200,
		"log/1/nodes/1/log.json": 404, "log/1/history.bin": 404, "report.html": 404, "certificates/a.json": 404,
	} {
		if code, _, body := get(t, stocked(), "/run/"+path, "localhost"); code != want {
			t.Errorf("%s: %d, expected %d: %s", path, code, want, body)
		}
	}
	if _, head, _ := get(t, stocked(), "/run/log/1/porcupine/a.html", "localhost"); !strings.Contains(head.Get("Content-Security-Policy"), "sandbox") {
		t.Error("a page that is not ours is not kept apart")
	}
	for _, p := range []string{"log/../../x/report.html", "log//1/report.html", "./log/report.html"} {
		if _, _, ok := split(p); ok {
			t.Errorf("%s is taken for a path", p)
		}
	}
}

func TestOnlyThisMachineIsAnswered(t *testing.T) {
	for host, want := range map[string]int{"localhost:8080": 200, "127.0.0.1": 200, "[::1]:9": 200, "evil.example": 403, "10.0.0.1:80": 403, "": 403} {
		if code, _, _ := get(t, stocked(), "/", host); code != want {
			t.Errorf("host %q: %d, expected %d", host, code, want)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(url.Values{}.Encode()))
	r.Host = "localhost"
	w := httptest.NewRecorder()
	Handler(stocked()).ServeHTTP(w, r)
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}
