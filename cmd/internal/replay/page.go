// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"

	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/internal/ui"
)

var (
	//go:embed page/page.html
	pageHTML string

	//go:embed page/page.css
	pageCSS string

	//go:embed page/page.js
	pageJS string
)

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// writePage writes a document as an HTML page. The page does not load other files, and shows all numbers even
// without scripts.
func (d *document) writePage(w io.Writer) error {
	style, err := ui.Style("uplot/uPlot.min.css", "base.css")
	if err != nil {
		return err
	}
	script, err := ui.Script(pageJS, "uplot/uPlot.iife.min.js")
	if err != nil {
		return err
	}
	data, err := json.Marshal(map[string]any{"figures": d.Figures}) // json.Marshal escapes <, >, & and line separators
	if err != nil {
		return err
	}
	style += pageCSS
	d.Title = display.EscapeUnsafe(d.Title)
	return pageTemplate.Execute(w, struct {
		*document
		CSP    string
		Style  template.CSS
		Script template.JS
		Data   template.JS
	}{d, fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'", hash(script), hash(style)),
		template.CSS(style), template.JS(script), template.JS(data)})
}

// hash returns the content security policy source of an inline block.
func hash(block string) string {
	sum := sha256.Sum256([]byte(block))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
