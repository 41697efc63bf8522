// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// oddEnglish finds constructions that are correct and yet tire a reader when they
// are frequent. Other projects have at most 5 of them per 1,000 lines of comments.
var oddEnglish = regexp.MustCompile(`\bwhat (?:is|was|has|it|they|the|an?)\b|\b[Ww]ho(?:ever)?\b|\bwhose\b|` +
	`\b[Tt]hose (?:that|who|of)\b|\bthat of\b|\bof which\b|\b(?:is|are) sa[i]d\b|\bsays? (?:it|so|that)\b|\bsaid of\b|` +
	`\bhas not [a-z]+ |\bnobody\b|\bnone of (?:its|theirs|ours)\b|\bbec(?:omes?|ame) of\b|\bas far as\b|\bbut for\b|\bbe it\b`)

// maxDensity has the most matches of oddEnglish per 1,000 lines. Comments are those
// outside of tests; empty lines of documents do not count.
var maxDensity = map[int]int{inComments: 15, inDocs: 30}

var commentLine = regexp.MustCompile(`^\s*//`)

type density struct {
	hits  []hit
	lines map[int]int // by kind
}

func measure(sources []source) density {
	d := density{lines: map[int]int{}}
	for _, s := range sources {
		isGo := strings.HasSuffix(s.path, ".go") && !strings.HasSuffix(s.path, "_test.go")
		if !isGo && !strings.HasSuffix(s.path, ".md") {
			continue
		}
		kind := inDocs
		if isGo {
			kind = inComments
		}
		for i, line := range strings.Split(s.text, "\n") {
			if isGo && !commentLine.MatchString(line) || strings.TrimSpace(line) == "" {
				continue
			}
			d.lines[kind]++
			for _, m := range oddEnglish.FindAllString(line, -1) {
				message := fmt.Sprintf("'%s' is frequent: name the thing.", strings.TrimSpace(m))
				d.hits = append(d.hits, hit{s.path, i + 1, kind, "Density", message})
			}
		}
	}
	return d
}

// report writes each density above its maximum to w.
func (d density) report(w io.Writer) (ok bool) {
	ok = true
	for _, kind := range []int{inDocs, inComments} {
		n, most := 0, maxDensity[kind]
		for _, h := range d.hits {
			if h.kind == kind {
				n++
			}
		}
		if n*1000 > most*d.lines[kind] {
			ok = false
			fmt.Fprintf(w, "density: %d odd phrases in %d lines of %s, the maximum is %d per 1,000. List them: go run ./tools/prose -list PATH\n",
				n, d.lines[kind], kinds[kind], most)
		}
	}
	return ok
}
