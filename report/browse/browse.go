// Package browse is the run browser: it lists the runs of a store, narrows the list, puts two runs side by side and opens the page of each. It serves what a Store
// gives it, only to this machine, and changes nothing. Whatever the store says is shown as text. It knows results and pages; where they lie is the store's affair.
// Start reading at Store and Handler.
package browse

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"ackproof/model"
	"ackproof/report"
	"ackproof/report/page"
)

// Store is where runs are kept.
type Store interface {
	// Runs lists every run, the newest first; a damaged one is an Entry with its Damage.
	Runs() ([]Entry, error)
	// Page writes the page of a run.
	Page(w io.Writer, name string) error
	// Open opens a file of a run by its slash-separated path in the run's directory. It never leaves that directory.
	Open(name, file string) (fs.File, error)
}

// Entry is one run of a list.
type Entry struct {
	Name    string // slash-separated path in the store
	Started time.Time
	Results model.Results
	Damage  string // what is wrong with it, "" if nothing: then the rest may be empty
}

// perPage bounds the runs of one list.
const perPage = 200

//go:embed browse.html
var files embed.FS

var pages = template.Must(template.Must(page.Parts().Funcs(template.FuncMap{
	"plain": report.Plain,
}).ParseFS(files, "browse.html")).Clone())

// Handler serves the browser. It answers only requests that were addressed to this machine by a name that is always this machine's, so that no page from elsewhere can
// read the store through a name of its own.
func Handler(s Store) http.Handler {
	b := browser{s}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", b.list)
	mux.HandleFunc("GET /compare", b.compare)
	mux.HandleFunc("GET /run/{path...}", b.run)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !loopback(r.Host) {
			http.Error(w, "this browser of runs answers to localhost only", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

type browser struct{ store Store }

// listView is what the list shows.
type listView struct {
	Filter              filter
	Rows                []row
	All, Found, Damaged int
	Systems, Workloads  []string
	Earlier, Later      string // links to other parts of the list
}

type row struct {
	Entry
	Link             string
	Claims, Faults   string
	Load             string
	Started, Verdict string
}

// filter narrows a list; zero fields ask for nothing.
type filter struct {
	Verdict, System, Workload, Text string
	From                            int
}

func filterOf(r *http.Request) filter {
	q := r.URL.Query()
	from, err := strconv.Atoi(q.Get("from"))
	if err != nil {
		from = 0
	}
	return filter{q.Get("verdict"), q.Get("system"), q.Get("workload"), strings.TrimSpace(q.Get("text")), max(0, from)}
}

// damaged is the verdict by which a filter names runs that cannot be read.
const damaged = "damaged"

func (f filter) fits(e *Entry) bool {
	verdict := string(e.Results.Verdict)
	if e.Damage != "" {
		verdict = damaged
	}
	return (f.Verdict == "" || f.Verdict == verdict) && (f.System == "" || f.System == e.Results.System.Name) && (f.Workload == "" || f.Workload == e.Results.Workload) &&
		(f.Text == "" || strings.Contains(strings.ToLower(haystack(e)), strings.ToLower(f.Text)))
}

// haystack is what the text of a filter is looked for in.
func haystack(e *Entry) string {
	all := []string{e.Name, e.Damage, "seed " + strconv.FormatInt(e.Results.Seed, 10)}
	for _, c := range e.Results.Claims {
		if c.Verdict != model.Held {
			all = append(all, string(c.ID))
		}
		for _, a := range c.Anomalies {
			all = append(all, string(a.Kind))
		}
	}
	for _, f := range e.Results.Faults {
		all = append(all, f.Kind)
	}
	return strings.Join(all, "\n")
}

func (b browser) list(w http.ResponseWriter, r *http.Request) {
	entries, err := b.store.Runs()
	if err != nil {
		http.Error(w, report.Visible(err.Error()), http.StatusInternalServerError)
		return
	}
	v := listView{Filter: filterOf(r), All: len(entries)}
	var found []*Entry
	for i := range entries {
		e := &entries[i]
		if e.Damage != "" {
			v.Damaged++
		} else {
			v.Systems = append(v.Systems, e.Results.System.Name)
			v.Workloads = append(v.Workloads, e.Results.Workload)
		}
		if v.Filter.fits(e) {
			found = append(found, e)
		}
	}
	v.Systems, v.Workloads = distinct(v.Systems), distinct(v.Workloads)
	v.Found = len(found)
	from := min(v.Filter.From, len(found))
	to := min(from+perPage, len(found))
	for _, e := range found[from:to] {
		v.Rows = append(v.Rows, rowOf(e))
	}
	if from > 0 {
		v.Later = at(r, max(0, from-perPage))
	}
	if to < len(found) {
		v.Earlier = at(r, to)
	}
	b.write(w, http.StatusOK, "list", v)
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// at is the address of the same list from another run on.
func at(r *http.Request, from int) string {
	q := r.URL.Query()
	q.Set("from", strconv.Itoa(from))
	return "/?" + q.Encode()
}

func rowOf(e *Entry) row {
	res := &e.Results
	r := row{Entry: *e, Link: (&url.URL{Path: "/run/" + e.Name + "/report.html"}).EscapedPath(), Load: fmt.Sprintf("%.0f s", res.Seconds.Load), Verdict: string(res.Verdict)}
	if !e.Started.IsZero() {
		r.Started = e.Started.UTC().Format("2006-01-02 15:04:05")
	}
	var broken []string
	counts := map[model.Verdict]int{}
	for _, c := range res.Claims {
		counts[c.Verdict]++
		if c.Verdict == model.Violated {
			broken = append(broken, string(c.ID))
		}
	}
	parts := broken
	for _, v := range []model.Verdict{model.Held, model.Undecided, model.NotTested} {
		if counts[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[v], v))
		}
	}
	r.Claims = strings.Join(parts, ", ")
	hit := 0
	var kinds []string
	for _, f := range res.Faults {
		if f.Effective {
			hit++
			kinds = append(kinds, f.Kind)
		}
	}
	r.Faults = "none"
	if len(res.Faults) > 0 {
		r.Faults = fmt.Sprintf("%d of %d", hit, len(res.Faults))
		if hit > 0 {
			r.Faults += ": " + strings.Join(distinct(kinds), ", ")
		}
	}
	return r
}

// compareView is two runs, the earlier one first.
type compareView struct {
	Before, Now row
	page.Comparison
}

func (b browser) compare(w http.ResponseWriter, r *http.Request) {
	names := []string{r.URL.Query().Get("before"), r.URL.Query().Get("now")}
	entries, err := b.store.Runs()
	if err != nil {
		http.Error(w, report.Visible(err.Error()), http.StatusInternalServerError)
		return
	}
	var two [2]*Entry
	for i, name := range names {
		at := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
		switch {
		case name == "":
			b.fail(w, http.StatusBadRequest, "Two runs are needed: choose one as the earlier and one as the later in the list.")
			return
		case at < 0:
			b.fail(w, http.StatusNotFound, "There is no run "+name+" in this store.")
			return
		case entries[at].Damage != "":
			b.fail(w, http.StatusUnprocessableEntity, entries[at].Damage)
			return
		}
		two[i] = &entries[at]
	}
	b.write(w, http.StatusOK, "compare", compareView{rowOf(two[0]), rowOf(two[1]), page.Compare(two[0].Results, two[1].Results)})
}

// kinds are the files of a run that the browser hands out, by their suffix. Anything else in a run directory stays where it is.
var kinds = map[string]string{".json": "application/json", ".html": "text/html; charset=utf-8"}

// run serves the page of a run and the files that it links to.
func (b browser) run(w http.ResponseWriter, r *http.Request) {
	name, file, ok := split(r.PathValue("path"))
	kind := kinds[path.Ext(file)]
	if !ok || kind == "" {
		b.fail(w, http.StatusNotFound, "A run has report.html, results.json, run.json, certificates/ and porcupine/ to look at.")
		return
	}
	if file == "report.html" {
		var out bytes.Buffer
		if err := b.store.Page(&out, name); err != nil {
			b.fail(w, http.StatusUnprocessableEntity, err.Error())
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Write(out.Bytes())
		return
	}
	f, err := b.store.Open(name, file)
	if err != nil {
		status := http.StatusUnprocessableEntity
		if errors.Is(err, fs.ErrNotExist) {
			status = http.StatusNotFound
		}
		b.fail(w, status, err.Error())
		return
	}
	defer f.Close()
	if kind == kinds[".html"] { // made by porcupine: a script of its own, and nobody to ask
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; sandbox allow-scripts")
	}
	w.Header().Set("Content-Type", kind)
	io.Copy(w, f)
}

// split parts the path of a run from the path of a file in it.
func split(p string) (name, file string, ok bool) {
	if path.Clean("/"+p) != "/"+p {
		return "", "", false
	}
	dir, base := path.Split(p)
	dir = strings.TrimSuffix(dir, "/")
	switch base {
	case "report.html", "results.json", "run.json":
		return dir, base, dir != ""
	}
	parent, sub := path.Split(dir)
	if sub != "certificates" && sub != "porcupine" {
		return "", "", false
	}
	parent = strings.TrimSuffix(parent, "/")
	return parent, sub + "/" + base, parent != ""
}

func (b browser) fail(w http.ResponseWriter, status int, text string) {
	b.write(w, status, "failure", text)
}

// write shows a template. What is no text becomes visible in one place, for all of them.
func (b browser) write(w http.ResponseWriter, status int, name string, data any) {
	var out strings.Builder
	if err := pages.ExecuteTemplate(&out, name, data); err != nil {
		http.Error(w, "show "+name+": "+report.Visible(err.Error()), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src "+page.StylePolicy()+"; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	// The style sheet must stay as it is, or its hash would not fit.
	top, rest, _ := strings.Cut(report.Visible(out.String()), "<style></style>")
	io.WriteString(w, top+"<style>"+page.Style()+"</style>"+rest)
}

// Verdicts are what the list can be narrowed to.
func (listView) Verdicts() []string {
	return []string{string(model.Violated), string(model.Undecided), string(model.NotTested), string(model.Held), damaged}
}
