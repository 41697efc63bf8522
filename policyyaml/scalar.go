// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

type scalar struct {
	json         string
	reason, hint string // why it is invalid; json is then null
	number       bool
}

var (
	decimalInt = regexp.MustCompile(`^[-+]?[0-9]+$`)
	basedInt   = regexp.MustCompile(`^0(o[0-7]+|x[0-9a-fA-F]+)$`)
	float      = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	notFinite  = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// resolve interprets a plain scalar by the core schema of YAML 1.2 (section 10.3.2): yes, on, 1_000, 12:30 and
// 2026-01-02 are strings. Numbers keep their digits.
func resolve(text string) scalar {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return scalar{json: "null"}
	case "true", "True", "TRUE":
		return scalar{json: "true"}
	case "false", "False", "FALSE":
		return scalar{json: "false"}
	}
	switch {
	case decimalInt.MatchString(text), float.MatchString(text):
		digits := strings.TrimLeft(text, "-+")
		if len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
			// 010 is 8 in YAML 1.1 and 10 in YAML 1.2. It may also be a postal code.
			return scalar{json: "null", reason: fmt.Sprintf("the number %s begins with a zero", text), hint: "remove the zero, or use quotes if it is not a number"}
		}
		return scalar{json: jsonNumber(text), number: true}
	case basedInt.MatchString(text):
		v, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			return scalar{json: "null", reason: fmt.Sprintf("the number %s is too large", text)}
		}
		return scalar{json: strconv.FormatUint(v, 10), number: true}
	case notFinite.MatchString(text):
		return scalar{json: "null", reason: fmt.Sprintf("%s is not a finite number", text)}
	}
	return scalar{json: quoteJSON(text)}
}

// jsonNumber converts a YAML number to JSON, which has no plus sign and needs digits on both sides of the point.
func jsonNumber(text string) string {
	text = strings.TrimPrefix(text, "+")
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	if text[0] == '.' {
		text = "0" + text
	}
	if i := strings.IndexByte(text, '.'); i >= 0 && (i+1 == len(text) || text[i+1] == 'e' || text[i+1] == 'E') {
		text = text[:i] + text[i+1:]
	}
	return sign + text
}
