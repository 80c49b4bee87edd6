package page

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"ackproof/report"
)

//go:embed template.html parts.html assets
var files embed.FS

// scripts are the files of the page's one script, in their order.
var scripts = []string{"data.js", "scale.js", "lanes.js", "draw.js", "describe.js", "controls.js", "main.js"}

// Write writes the page of a run. Errors are those of reading the history and of w.
func Write(w io.Writer, run *Run) error {
	c, err := collect(run, maxOperations)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	size := c.ops.close()
	v := newView(run, c, size)
	stretches := stretchesOf(run, c, v.Gaps)
	if err := look(run, stretches); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	for _, s := range stretches {
		v.Grids = append(v.Grids, s.grid())
	}
	data, err := json.Marshal(picture(run, c))
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	out := bufio.NewWriterSize(w, 64<<10)
	if err := write(out, v, data, c.ops); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return out.Flush()
}

// styleText and scriptText are the whole of what the page may run.
var styleText, scriptText = mustRead("assets/style.css"), "(() => {\n\"use strict\";\n" + joined() + "})();\n"

func mustRead(name string) string {
	raw, err := files.ReadFile(name)
	if err != nil { // it is embedded
		panic(err)
	}
	return string(raw)
}

func joined() string {
	var out strings.Builder
	for _, name := range scripts {
		out.WriteString(mustRead("assets/" + name))
	}
	return out.String()
}

// policy lets the page run its own script and style and nothing else, and ask nobody for anything.
func policy() string {
	return fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; base-uri 'none'; form-action 'none'", hash(scriptText), hash(styleText))
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// functions are what the templates call beside their data.
var functions = template.FuncMap{
	"plural":  func(n int, thing string) string { return plural(n, thing) },
	"number":  func(n any) string { return numberOf(n) },
	"moment":  moment,
	"span":    span,
	"percent": func(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) },
	"along":   along,
	"wide": func(from, to, a, b time.Duration) string {
		return fmt.Sprintf("%.3f%%", 100*float64(b-a)/float64(max(1, to-from)))
	},
	"date": func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format("2006-01-02 15:04:05 UTC")
	},
}

var body = template.Must(template.New("template.html").Funcs(functions).ParseFS(files, "template.html", "parts.html"))

// along is where a moment lies in a stretch of time, for a drawing.
func along(from, to, at time.Duration) string {
	return fmt.Sprintf("%.3f%%", 100*float64(at-from)/float64(max(1, to-from)))
}

func numberOf(n any) string {
	switch n := n.(type) {
	case int:
		return number(n)
	case int64:
		return number(n)
	}
	return fmt.Sprint(n)
}

// write puts the parts together. What is not text is base64, which needs no escaping and cannot end the element that it is in.
func write(w io.Writer, v *view, data []byte, ops *columns) error {
	title := fmt.Sprintf("%s · %s %s · seed %d", v.Verdict, v.Results.System.Name, v.Results.Workload, v.Results.Seed)
	_, err := fmt.Fprintf(w, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>%s</title>
<style>%s</style>
</head>
<body>
`, template.HTMLEscapeString(policy()), template.HTMLEscapeString(report.Visible(title)), styleText)
	if err != nil {
		return err
	}
	// The template escapes what is HTML; report.Visible then shows what is no text. The template itself has none of that.
	var text strings.Builder
	if err := body.Execute(&text, v); err != nil {
		return err
	}
	if _, err := io.WriteString(w, report.Visible(text.String())); err != nil {
		return err
	}
	if _, err := io.WriteString(w, `<script type="application/octet-stream" id="picture">`); err != nil {
		return err
	}
	if err := writeBase64(w, data); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "</script>\n"); err != nil {
		return err
	}
	if err := ops.write(w); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "<script>%s</script>\n</body>\n</html>\n", scriptText)
	return err
}
