// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/policy"
)

var modelAttributes = policy.AIAttributes()

// setModelAttribute parses an attribute of a request to a language model.
func (r *Request) setModelAttribute(s *scanner, name string) error {
	if !slices.Contains(modelAttributes, "ai:"+name) {
		return fmt.Errorf("unknown attribute %q of a request to a language model: the attributes are %s", name, strings.Join(modelAttributes, ", "))
	}
	value, scalar, err := s.scalar()
	if scalar {
		r.model = append(r.model, pair{name, value})
	}
	return err
}

// setUsage parses the number of tokens of one class.
func (r *Request) setUsage(s *scanner, class string) error {
	var to *int64
	switch class {
	case "input":
		to = &r.usage.Input
	case "cached":
		to = &r.usage.Cached
	case "cache_write":
		to = &r.usage.CacheWrite
	case "output":
		to = &r.usage.Output
	case "reasoning":
		to = &r.usage.Reasoning
	default:
		return fmt.Errorf("unknown class %q: the classes are input, cached, cache_write, output and reasoning", class)
	}
	text, err := s.number()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxTokens {
		return fmt.Errorf("%q: %.40s is not a number of tokens up to %d", class, text, maxTokens)
	}
	*to = n
	return nil
}

// maxTokens bounds the tokens of each class in one request.
const maxTokens = 1_000_000_000
