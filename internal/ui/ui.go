// SPDX-License-Identifier: Apache-2.0

// Package ui has what all pages look by: their styles, and the scripts that draw text,
// tables and charts. The dashboard serves them as files, and a report has them within.
package ui

import (
	"embed"
	"io/fs"
)

//go:embed files
var embedded embed.FS

// Files are the styles and scripts, by their names: base.css, dom.js and so on. Package
// dashboard serves them below ui/.
func Files() fs.FS {
	files, err := fs.Sub(embedded, "files")
	if err != nil {
		panic("ui: " + err.Error()) // the name is a valid one
	}
	return files
}
