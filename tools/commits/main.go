// SPDX-License-Identifier: Apache-2.0

// Commits checks the messages of the commits on HEAD: a subject such as "memstore: keep shards small" and a body with
// the reason. It skips merge commits and the commits before this rule.
package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/metehq/mete/tools/internal/git"
)

// base is the newest commit that need not follow the rules.
const base = "b854d2823e63ebe0d637819f84487e30681c9ac9"

const maxSubject = 100

var subjectPattern = regexp.MustCompile(`^[\w./-]+(, [\w./-]+)*: [a-z]`)

func main() {
	found, err := check(".", base)
	if err != nil {
		fmt.Fprintln(os.Stderr, "commits:", err)
		os.Exit(2)
	}
	for _, f := range found {
		fmt.Println(f)
	}
	if len(found) > 0 {
		fmt.Println("change a message with: git rebase --interactive, then reword")
		os.Exit(1)
	}
}

// check returns the errors in the messages of the commits in dir that follow
// base. A shallow clone without base has newer commits only: check reads them all.
func check(dir, base string) ([]string, error) {
	revisions := []string{"HEAD", "^" + base}
	if _, err := git.Run(dir, "rev-parse", "--verify", "--quiet", base+"^{commit}"); err != nil {
		revisions = revisions[:1]
	}
	log, err := git.Run(dir, append([]string{"log", "-z", "--no-merges", "--format=%h%n%s%n%b"}, revisions...)...)
	if err != nil {
		return nil, err
	}
	var found []string
	for commit := range strings.SplitSeq(log, "\x00") {
		if commit == "" {
			continue
		}
		fields := strings.SplitN(commit, "\n", 3)
		for _, err := range checkMessage(fields[1], fields[2]) {
			found = append(found, fmt.Sprintf("%s %q: %v", fields[0], fields[1], err))
		}
	}
	return found, nil
}

func checkMessage(subject, body string) []error {
	var errs []error
	if !subjectPattern.MatchString(subject) {
		errs = append(errs, errors.New(`start the subject with a package and a verb, as in "memstore: keep shards small"`))
	}
	if strings.Contains(subject, ";") {
		errs = append(errs, errors.New(`the subject joins several changes with ";": make one commit per change`))
	}
	if strings.HasSuffix(subject, ".") {
		errs = append(errs, errors.New("remove the period at the end of the subject"))
	}
	if n := utf8.RuneCountInString(subject); n > maxSubject {
		errs = append(errs, fmt.Errorf("the subject has %d characters: write at most %d, and an empty line below it", n, maxSubject))
	}
	if strings.TrimSpace(body) == "" {
		errs = append(errs, errors.New("add a body with the reason for the change"))
	}
	return errs
}
