// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/metehq/mete/tools/internal/git"
)

// changes are the lines of the working tree that differ from a base commit.
type changes struct {
	base        string
	unpublished bool // whether base is the newest commit shared with the upstream branch
	lines       map[string][]span
}

type span struct{ first, last int }

// changesSinceUpstream compares the working tree with the newest commit that HEAD shares with its upstream branch or
// origin/main. Without such a branch, or if HEAD has no commits that the branch lacks, the base is the parent of HEAD.
func changesSinceUpstream() (changes, error) {
	for _, branch := range []string{"@{upstream}", "origin/main"} {
		base, err := git.Run(".", "merge-base", "HEAD", branch)
		if err != nil {
			continue
		}
		c, err := changesSince(base[:12])
		c.unpublished = true
		if len(c.lines) > 0 || err != nil {
			return c, err
		}
	}
	if _, err := git.Run(".", "rev-parse", "--verify", "--quiet", "HEAD~1"); err == nil {
		return changesSince("HEAD~1")
	}
	return changesSince("HEAD")
}

// changesSince compares the working tree, untracked files included, with a commit.
func changesSince(base string) (changes, error) {
	diff, err := git.Run(".", "-c", "core.quotePath=false", "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-prefix", "--no-renames", base, "--")
	if err != nil {
		return changes{}, err
	}
	lines, err := parseDiff(diff)
	if err != nil {
		return changes{}, err
	}
	untracked, err := git.Run(".", "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return changes{}, err
	}
	for name := range strings.SplitSeq(untracked, "\x00") {
		if !isChecked(name) {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return changes{}, err
		}
		lines[name] = []span{{1, strings.Count(string(text), "\n") + 1}}
	}
	return changes{base: base, lines: lines}, nil
}

var hunk = regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)

// parseDiff returns the new lines of a diff without context, by path.
func parseDiff(diff string) (map[string][]span, error) {
	lines := map[string][]span{}
	path, header := "", false
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "diff --git "):
			header = true
		case header && strings.HasPrefix(line, "+++ "):
			path = strings.TrimSuffix(strings.TrimPrefix(line, "+++ "), "\t")
		case strings.HasPrefix(line, "@@ "):
			header = false
			m := hunk.FindStringSubmatch(line)
			if m == nil {
				return nil, fmt.Errorf("git diff: unknown hunk header %q", line)
			}
			first, _ := strconv.Atoi(m[1])
			n := 1
			if m[2] != "" {
				n, _ = strconv.Atoi(m[2])
			}
			if n > 0 {
				lines[path] = append(lines[path], span{first, first + n - 1})
			}
		}
	}
	return lines, nil
}

func (c changes) has(h hit) bool {
	for _, s := range c.lines[h.path] {
		if s.first <= h.line && h.line <= s.last {
			return true
		}
	}
	return false
}
