// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore/rules"
)

// changeLimit sets the rate and the burst that the flags name: in their columns or, where
// no number of tokens a second is the rate, as of 5/1m, in spec. The rest of spec stays.
func (c *rulesCommand) changeLimit(r *rules.Rule) error {
	if !c.given["rate"] && !c.given["burst"] {
		return nil
	}
	spec, config, err := limitInSpec(r)
	if err != nil {
		return err
	}
	rate := c.rate
	if strings.Contains(rate, "/") {
		number, exact := ratePerSecond(rate)
		if !exact {
			return c.limitToSpec(r, spec, config)
		}
		rate = number
	}
	if !c.given["rate"] && config["rate"] != nil {
		return c.limitToSpec(r, spec, config)
	}
	if c.given["rate"] {
		r.RatePerSecond = rate
	}
	if c.given["burst"] {
		r.BurstCapacity = c.burst
	}
	if rate == "" || config["rate"] == nil && config["rps"] == nil {
		return nil
	}
	if r.BurstCapacity == "" {
		r.BurstCapacity = strings.Trim(string(config["burst"]), `"`)
	}
	for _, name := range []string{"rate", "rps", "burst"} {
		delete(config, name)
	}
	return setConfig(r, spec, config)
}

// limitToSpec moves the limit to spec, which no column may then have.
func (c *rulesCommand) limitToSpec(r *rules.Rule, spec, config map[string]json.RawMessage) error {
	burst := c.burst
	if burst == "" {
		burst = r.BurstCapacity
	}
	if c.given["rate"] {
		config["rate"], _ = json.Marshal(c.rate) // a string always marshals
		delete(config, "rps")
	}
	switch {
	case burst == "" && config["burst"] == nil:
		return unmet(fmt.Sprintf("--rate %s needs a burst: set --burst, too", c.rate))
	case burst == "":
	case json.Valid([]byte(burst)):
		config["burst"] = json.RawMessage(burst)
	default:
		config["burst"], _ = json.Marshal(burst) // such as 10s
	}
	r.RatePerSecond, r.BurstCapacity = "", ""
	return setConfig(r, spec, config)
}

// limitInSpec returns the spec of a rule, and the algorithm_config in it.
func limitInSpec(r *rules.Rule) (spec, config map[string]json.RawMessage, err error) {
	if spec, err = jsonObject(r.Spec); err != nil {
		return nil, nil, fmt.Errorf("rule %q: its spec is no JSON object: %w", r.Name, err)
	}
	if config, err = jsonObject(spec["algorithm_config"]); err != nil {
		return nil, nil, fmt.Errorf("rule %q: algorithm_config in its spec is no JSON object: %w", r.Name, err)
	}
	return spec, config, nil
}

// jsonObject reads an object, which is empty where the text is, or null.
func jsonObject(text json.RawMessage) (object map[string]json.RawMessage, err error) {
	if len(text) > 0 {
		err = json.Unmarshal(text, &object)
	}
	if object == nil {
		object = map[string]json.RawMessage{}
	}
	return object, err
}

// setConfig makes config the algorithm_config in the spec of a rule.
func setConfig(r *rules.Rule, spec, config map[string]json.RawMessage) (err error) {
	delete(spec, "algorithm_config")
	if len(config) > 0 {
		if spec["algorithm_config"], err = json.Marshal(config); err != nil {
			return err
		}
	}
	r.Spec, err = json.Marshal(spec)
	return err
}

// ratePerSecond returns a rate such as 60/1m as a number of tokens a second. Not exact is one
// that no number with three decimals is, such as 5/1m.
func ratePerSecond(text string) (number string, exact bool) {
	rate, err := bucket.ParseRate(text)
	if err != nil || rate.Tokens > bucket.MaxTokens/bucket.Tokens(time.Second/time.Microsecond) {
		return "", false // check has seen that it is one
	}
	tokens, per := int64(rate.Tokens)*int64(time.Second/time.Microsecond), int64(rate.Per/time.Microsecond)
	if tokens%per != 0 {
		return "", false
	}
	return bucket.Tokens(tokens / per).String(), true
}
