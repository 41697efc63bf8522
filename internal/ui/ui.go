// SPDX-License-Identifier: Apache-2.0

// Package ui embeds the style sheet and the scripts that the dashboard and HTML reports share: DOM helpers, number
// formats, tables and charts. The dashboard serves [Files]; a report inlines the results of [Script] and [Style].
package ui

import (
	"embed"
	"io/fs"
)

//go:embed files
var embedded embed.FS

// Files returns the styles and scripts by their names, such as base.css and dom.js.
func Files() fs.FS {
	files, err := fs.Sub(embedded, "files")
	if err != nil {
		panic("ui: " + err.Error()) // the directory is embedded
	}
	return files
}
