// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/metehq/mete/bucket"
)

var errLog = errors.New(`not an access log line: want ADDRESS - USER [02/Jan/2006:15:04:05 -0700] "METHOD /path HTTP/1.1" STATUS BYTES, ` +
	`and for the combined format "REFERER" "USER-AGENT"`)

// parseLog parses a line of the common or combined format:
//
//	192.0.2.1 - user [02/Jan/2006:15:04:05 -0700] "GET /?q=1 HTTP/1.1" 200 612 "referer" "user agent"
//
// It validates the line but parses its fields lazily in [Request.Lookup], because few policies need all of them.
func parseLog(r *Request, line string, clock *logClock) error {
	address, _, ok := strings.Cut(line, " ")
	if !ok {
		return errLog
	}
	at, rest, err := clock.cut(line, len(address))
	if err != nil {
		return err
	}
	request, rest, ok := cutQuoted(rest)
	if !ok {
		return fmt.Errorf("%w; its request has no closing quote", errLog)
	}
	status, rest, _ := strings.Cut(strings.TrimPrefix(rest, " "), " ")
	if !isStatus(status) {
		return fmt.Errorf("%w; found %.20q instead of the status", errLog, status)
	}
	referer, agent := "-", "-"
	size, rest, combined := strings.Cut(rest, " ")
	if combined && rest != "" && rest[0] == '"' {
		if referer, agent, err = cutHeaders(rest); err != nil {
			return err
		}
	}
	r.setLog(at, address, request, referer, agent)
	r.status, r.bytes = readStatus(status), readSize(size)
	return nil
}

// setLog sets r to a log line. For speed, it assigns single fields and resets other fields only if they are set.
func (r *Request) setLog(at bucket.Instant, address, request, referer, agent string) {
	if !r.logged {
		r.reset()
	}
	r.At, r.logged = at, true
	r.logAddress, r.logRequest, r.logReferer, r.logAgent = address, request, referer, agent
	r.addressRead, r.targetRead = false, false
}

// cutHeaders returns the two extra fields of the combined format, still escaped. More fields may follow.
func cutHeaders(rest string) (referer, agent string, err error) {
	referer, rest, ok := cutQuoted(rest)
	if !ok {
		return "", "", fmt.Errorf("%w; its referer is not in quotes", errLog)
	}
	agent, _, ok = cutQuoted(strings.TrimPrefix(rest, " "))
	if !ok {
		return "", "", fmt.Errorf("%w; its user-agent is not in quotes", errLog)
	}
	return referer, agent, nil
}

func isStatus(s string) bool {
	if s == "-" {
		return true
	}
	return len(s) == 3 && s[0] >= '0' && s[0] <= '9' && s[1] >= '0' && s[1] <= '9' && s[2] >= '0' && s[2] <= '9'
}

// readStatus returns 0 for a line without a status.
func readStatus(s string) int {
	if s == "-" {
		return 0
	}
	return int(s[0]-'0')*100 + int(s[1]-'0')*10 + int(s[2]-'0')
}

// readSize returns the size of a body, where "-" is none, or -1 for another text.
func readSize(s string) int64 {
	if s == "-" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// cutQuoted returns the quoted string at the start of s, still escaped, and the rest.
func cutQuoted(s string) (quoted, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", s, false
	}
	for i := 1; i < len(s); {
		next := strings.IndexByte(s[i:], '"')
		if next < 0 {
			break
		}
		i += next
		if s[i-1] != '\\' || trailingSlashes(s[1:i])%2 == 0 {
			return s[1:i], s[i+1:], true
		}
		i++
	}
	return "", s, false
}

func trailingSlashes(s string) int {
	return len(s) - len(strings.TrimRight(s, `\`))
}
