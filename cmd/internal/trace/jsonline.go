// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/metehq/mete/bucket"
)

var fields = []string{"at", "method", "path", "host", "ip", "headers", "query", "jwt", "cost", "duration", "status", "bytes", "response_headers", "ai", "usage"}

func parseJSON(r *Request, line string) error {
	if !utf8.ValidString(line) {
		return errors.New("not UTF-8")
	}
	s, seen := scanner{text: line}, 0
	err := s.object(func(name string) error {
		i := slices.Index(fields, name)
		bit := 1 << max(i, 0)
		switch {
		case i < 0:
			return fmt.Errorf("unknown field %q: the fields are at, method, path, host, ip, headers, query, jwt, cost, duration, status, bytes, response_headers, ai and usage", name)
		case seen&bit != 0:
			return fmt.Errorf("duplicate field %q", name)
		}
		seen |= bit
		if name != "at" && s.null() {
			return nil
		}
		if err := r.setField(&s, name); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case !s.atEnd():
		return s.errorAt("the end of the line")
	case seen&1 == 0:
		return errors.New(`missing field "at": the time of the request in seconds`)
	}
	return nil
}

func (r *Request) setField(s *scanner, name string) (err error) {
	var text string
	switch name {
	case "at":
		if text, err = s.number(); err == nil {
			r.At, err = parseSeconds(text)
		}
	case "cost":
		if text, err = s.number(); err == nil {
			r.Cost, err = parseCost(text)
		}
	case "duration":
		if text, err = s.number(); err == nil {
			r.Duration, err = parseDuration(text)
		}
	case "status":
		if text, err = s.number(); err == nil {
			r.status, err = parseStatus(text)
		}
	case "bytes":
		if text, err = s.number(); err == nil {
			r.bytes, err = parseSize(text)
		}
	case "response_headers":
		err = s.object(func(name string) error {
			value, err := s.string()
			r.answers = append(r.answers, pair{strings.ToLower(name), value})
			return err
		})
	case "ai":
		err = s.object(func(name string) error { return r.setModelAttribute(s, name) })
	case "usage":
		r.used = true
		err = s.object(func(name string) error { return r.setUsage(s, name) })
	case "method":
		r.method, err = s.string()
	case "path":
		if text, err = s.string(); err == nil {
			r.setTarget(text)
		}
	case "host":
		if text, err = s.string(); err == nil {
			r.setHost(text)
		}
	case "ip":
		r.ip, err = s.address()
	case "headers":
		err = s.object(func(name string) error {
			value, err := s.string()
			r.headers = append(r.headers, pair{strings.ToLower(name), value})
			return err
		})
	case "query":
		err = s.object(func(name string) error {
			value, err := s.string()
			r.query = append(r.query, pair{name, value})
			return err
		})
	case "jwt":
		err = s.object(func(name string) error {
			value, scalar, err := s.scalar()
			if scalar {
				r.claims = append(r.claims, pair{name, value})
			}
			return err
		})
	}
	return err
}

// address parses an IP address. An empty string means none.
func (s *scanner) address() (string, error) {
	text, err := s.string()
	if err != nil || text == "" {
		return "", err
	}
	if _, err := netip.ParseAddr(text); err != nil {
		return "", fmt.Errorf("%.60q is not an IP address", text)
	}
	return text, nil
}

// maxDuration bounds the duration of a request: a week.
const maxDuration = 7 * 24 * time.Hour

func parseDuration(text string) (time.Duration, error) {
	at, err := parseSeconds(text)
	if d := time.Duration(at) * time.Microsecond; err != nil || d <= maxDuration {
		return d, err
	}
	return 0, fmt.Errorf("%.40s is too long: a request lasts at most %v", text, maxDuration)
}

func parseStatus(text string) (int, error) {
	status, err := strconv.Atoi(text)
	if err != nil || status < 100 || status > 999 {
		return 0, fmt.Errorf("%.40s is not a status between 100 and 999", text)
	}
	return status, nil
}

func parseSize(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%.40s is not a number of bytes", text)
	}
	return n, nil
}

func parseCost(text string) (bucket.Tokens, error) {
	cost, err := bucket.ParseTokens(text)
	if err == nil && cost == 0 {
		err = errors.New("must be above 0; omit it to use the cost in the policy")
	}
	return cost, err
}

// parseSeconds parses a JSON number of seconds and truncates it to microseconds. It avoids floats, so that 0.1 is
// exactly 100,000 µs.
func parseSeconds(text string) (bucket.Instant, error) {
	mantissa, exponent, err := splitExponent(text)
	if err != nil {
		return 0, err
	}
	if mantissa[0] == '-' {
		return 0, fmt.Errorf("%.40s is negative", text)
	}
	point, digits := strings.IndexByte(mantissa, '.'), len(mantissa)-1
	if point < 0 {
		point, digits = len(mantissa), len(mantissa)
	}
	var at bucket.Instant
	for i := range point + exponent + 6 {
		digit := byte('0')
		switch {
		case i < point:
			digit = mantissa[i]
		case i < digits:
			digit = mantissa[i+1]
		case at == 0:
			return 0, nil // all digits are 0
		}
		if at = at*10 + bucket.Instant(digit-'0'); at >= maxInstant {
			return 0, fmt.Errorf("%.40s is too late: times end in the year 2255", text)
		}
	}
	return at, nil
}

func splitExponent(text string) (mantissa string, exponent int, err error) {
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return text, 0, nil
	}
	mantissa, digits := text[:i], text[i+1:]
	negative := digits[0] == '-'
	digits = strings.TrimLeft(digits, "+-")
	for _, c := range []byte(digits) {
		if exponent = exponent*10 + int(c-'0'); exponent > MaxLineBytes {
			return "", 0, fmt.Errorf("%.40s is out of range", text)
		}
	}
	if negative {
		exponent = -exponent
	}
	return mantissa, exponent, nil
}
