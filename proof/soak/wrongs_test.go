// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// maxWrongs is the number of failures that ends a soak early.
const maxWrongs = 40

// failures are failed expectations. It is safe for concurrent use.
type failures struct {
	enough func()                           // called once there are maxWrongs
	tell   func(format string, args ...any) // of each as it happens

	mu   sync.Mutex
	said []string
}

func (w *failures) add(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.said) >= maxWrongs {
		return
	}
	text := time.Now().UTC().Format("15:04:05.000 ") + fmt.Sprintf(format, args...)
	w.said = append(w.said, text)
	if w.tell != nil {
		w.tell("wrong: %s", text)
	}
	if len(w.said) == maxWrongs && w.enough != nil {
		w.enough()
	}
}

func (w *failures) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.said...)
}

// grave matches what no server may ever log.
var grave = regexp.MustCompile(`DATA RACE|^panic:|^fatal error:|http: panic|superfluous`)

// expectedErrors are the errors that the soak itself brings about.
var expectedErrors = []string{
	"policy invalid", "policy error",
	"store call failed", "circuit breaker opened", "overrides sync failed",
}

// checkLog searches the server's log for unexpected lines.
func checkLog(s *server, w *failures) {
	for line := range strings.Lines(s.Log()) {
		switch {
		case grave.MatchString(line):
			w.add("%s: %s", s.name, line)
		case strings.Contains(line, "level=ERROR") && !containsAny(line, expectedErrors):
			w.add("%s logged an error: %s", s.name, line)
		case strings.Contains(line, "aborted at shutdown"):
			w.add("%s did not end in good order: %s", s.name, line)
		}
	}
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
