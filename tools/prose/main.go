// SPDX-License-Identifier: Apache-2.0

// Prose checks the English of documents, help texts, Go comments and strings, pages, and the comments of other files.
// Each of Vale's rules has a ceiling, which only falls. Changed lines must have no hits.
//
//	go run ./tools/prose              check
//	go run ./tools/prose -list PATH…  list all hits in the files and directories
//	go run ./tools/prose -lower       lower the ceilings to the counts, then check
//	go run ./tools/prose -set         set the ceilings to the counts, also higher ones
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/metehq/mete/tools/internal/git"
)

const (
	stylesDir    = "tools/vale/styles/mete"
	ceilingsFile = "tools/vale/ceilings.txt"
)

// maxListed is the number of hits that one failure lists.
const maxListed = 20

func main() {
	var o options
	flag.BoolVar(&o.list, "list", false, "list the hits in the files and directories of the arguments")
	flag.BoolVar(&o.lower, "lower", false, "lower the ceilings to the counts")
	flag.BoolVar(&o.set, "set", false, "set the ceilings to the counts, also higher ones")
	flag.Parse()
	o.paths = flag.Args()
	ok, err := run(os.Stdout, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

type options struct {
	list, lower, set bool
	paths            []string // of list; none is the working directory
}

// run checks the repository of the working directory and reports to w.
func run(w io.Writer, o options) (ok bool, err error) {
	if !o.list && len(o.paths) > 0 {
		return false, fmt.Errorf("unexpected argument %q: to list its hits, use -list", o.paths[0])
	}
	root, err := git.Run(".", "rev-parse", "--show-toplevel")
	if err != nil {
		return false, err
	}
	root = strings.TrimSpace(root)
	if o.list {
		o.paths, err = fromRoot(root, o.paths)
	}
	if err != nil {
		return false, err
	}
	if err := os.Chdir(root); err != nil {
		return false, err
	}
	sources, err := readSources(o.paths...)
	if err != nil {
		return false, err
	}
	if o.list && len(sources) == 0 {
		return false, fmt.Errorf("no file with text under %q", o.paths)
	}
	hits, err := lint(sources)
	if err != nil {
		return false, err
	}
	odd := measure(sources)
	if o.list {
		hits = append(hits, odd.hits...)
		for _, h := range hits {
			fmt.Fprintf(w, "%s:%d: %s (%s): %s\n", h.path, h.line, h.rule, kinds[h.kind], h.message)
		}
		fmt.Fprintf(w, "%d hits\n", len(hits))
		return len(hits) == 0, nil
	}
	rules, err := ruleNames(stylesDir)
	if err != nil {
		return false, err
	}
	counts := count(rules, hits)
	ceilings := counts
	if !o.set {
		text, err := os.ReadFile(ceilingsFile)
		if err != nil {
			return false, err
		}
		if ceilings, err = parseTable(string(text), rules); err != nil {
			return false, fmt.Errorf("%s: %w", ceilingsFile, err)
		}
	}
	if o.lower {
		ceilings = ceilings.lower(counts)
	}
	if o.set || o.lower {
		if err := os.WriteFile(ceilingsFile, []byte(ceilings.String()), 0o644); err != nil {
			return false, err
		}
	}
	changes, err := changesSinceUpstream()
	if err != nil {
		return false, err
	}
	ok = report(w, hits, counts, ceilings, changes)
	return odd.report(w) && ok, nil
}

func fromRoot(root string, paths []string) ([]string, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	var all []string
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(root, abs)
		if err != nil {
			return nil, err
		}
		all = append(all, rel)
	}
	return all, nil
}

// report writes each broken ceiling and each hit in a changed line to w.
func report(w io.Writer, hits []hit, counts, ceilings table, changes changes) (ok bool) {
	ok = true
	below := false
	for _, rule := range counts.rules() {
		for k, kind := range kinds {
			n, most := counts[rule][k], ceilings[rule][k]
			below = below || n < most
			if n <= most {
				continue
			}
			ok = false
			fmt.Fprintf(w, "%s: %d hits in %s, the ceiling is %d. Hits in lines changed since %s:\n", rule, n, kind, most, changes.base)
			list(w, hits, func(h hit) bool { return h.rule == rule && h.kind == k && changes.has(h) })
		}
	}
	isNew := func(h hit) bool { return changes.unpublished && changes.has(h) }
	for _, h := range hits {
		if ok && isNew(h) {
			ok = false
			fmt.Fprintf(w, "lines changed since %s must have no hits:\n", changes.base)
			list(w, hits, isNew)
		}
	}
	if !ok {
		fmt.Fprintln(w, "rewrite these sentences; CONTRIBUTING.md has the rules. All hits of a file: go run ./tools/prose -list FILE")
	}
	if below { // no failure: two branches that each remove hits would break each other
		fmt.Fprintln(w, "there are fewer hits than the ceilings allow; to lower them: go run ./tools/prose -lower")
	}
	return ok
}

// list writes the first hits that match to w.
func list(w io.Writer, hits []hit, match func(hit) bool) {
	n := 0
	for _, h := range hits {
		if !match(h) {
			continue
		}
		if n++; n <= maxListed {
			fmt.Fprintf(w, "  %s:%d: %s: %s\n", h.path, h.line, h.rule, h.message)
		}
	}
	if n > maxListed {
		fmt.Fprintf(w, "  and %d more\n", n-maxListed)
	}
}

func ruleNames(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no Vale rules (*.yml)", dir)
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".yml"))
	}
	return names, nil
}
