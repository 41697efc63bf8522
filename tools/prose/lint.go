// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/metehq/mete/tools/internal/git"
)

// A hit is a place that breaks a rule.
type hit struct {
	path    string
	line    int
	kind    int // an index of kinds
	rule    string
	message string
}

// helpDocuments are generated from the help texts, which they quote in fenced
// blocks. Vale skips those blocks, so it also gets the text of helpText.
var helpDocuments = []string{"doc/cli.md", "doc/config.md"}

// excluded are paths that other projects or programs wrote.
var excluded = regexp.MustCompile(`(^|/)(testdata|node_modules)/|^internal/ui/files/`)

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// lint runs Vale over the repository in the working directory.
func lint() ([]hit, error) {
	files, err := sources()
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "prose")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	original := map[string]string{} // by the path of the temporary file
	for _, doc := range helpDocuments {
		text, err := os.ReadFile(doc)
		if err != nil {
			return nil, err
		}
		name := filepath.Join(temp, filepath.Base(doc))
		if err := os.WriteFile(name, []byte(helpText(string(text))), 0o600); err != nil {
			return nil, err
		}
		original[name] = doc
		files = append(files, name)
	}
	hits, err := vale(files)
	if err != nil {
		return nil, err
	}
	for i := range hits {
		h := &hits[i]
		doc, isHelp := original[h.path]
		switch {
		case isHelp:
			h.path, h.kind = doc, inHelp
		case strings.HasSuffix(h.path, "_test.go"):
			h.kind = inTests
		case strings.HasSuffix(h.path, ".go"):
			h.kind = inComments
		}
	}
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.line, b.line), cmp.Compare(a.rule, b.rule))
	})
	return hits, nil
}

// sources returns the documents and Go files that git does not ignore.
func sources() ([]string, error) {
	out, err := git.Run(".", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "--", "*.md", "*.go")
	if err != nil {
		return nil, err
	}
	var files []string
	for name := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if excluded.MatchString(name) {
			continue
		}
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) { // deleted, but still in the index
			continue
		}
		if err != nil {
			return nil, err
		}
		if !generated.Match(text) {
			files = append(files, name)
		}
	}
	return files, nil
}

// vale returns the hits in files, all of kind inDocs.
func vale(files []string) ([]hit, error) {
	args := append([]string{"tool", "vale", "--config=.vale.ini", "--no-global", "--no-exit", "--output=JSON"}, files...)
	cmd := exec.Command("go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool vale: %w\n%s%s", err, out, stderr.Bytes())
	}
	var alerts map[string][]struct {
		Check, Message string
		Line           int
	}
	if err := json.Unmarshal(out, &alerts); err != nil {
		return nil, fmt.Errorf("go tool vale: %w in %.200q", err, out)
	}
	var hits []hit
	for path, found := range alerts {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(text), "\n")
		for _, a := range found {
			h := hit{path: path, line: a.Line, rule: strings.TrimPrefix(a.Check, "mete."), message: a.Message}
			if h.rule == "SentenceLength" && isTrailingComment(path, lines[a.Line-1]) {
				continue // Vale joins the trailing comments of consecutive lines.
			}
			hits = append(hits, h)
		}
	}
	return hits, nil
}

// isTrailingComment reports whether a line of a Go file has code before its comment.
func isTrailingComment(path, line string) bool {
	return strings.HasSuffix(path, ".go") && strings.Contains(line, " //") && !strings.HasPrefix(strings.TrimSpace(line), "//")
}
