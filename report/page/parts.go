package page

import "html/template"

// Parts are the templates that other pages of the project share with this one: "verdict", of a verdict as a string, and "comparison", of a Comparison.
func Parts() *template.Template {
	return template.Must(template.New("parts.html").Funcs(functions).ParseFS(files, "parts.html"))
}

// Style is the style sheet of the pages, and StylePolicy the source expression by which a content security policy allows it.
func Style() string { return styleText }

// StylePolicy is the source expression by which a content security policy allows Style.
func StylePolicy() string { return "'" + hash(styleText) + "'" }
