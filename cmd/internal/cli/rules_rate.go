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

// changeLimit sets the rate and the burst that the flags name: in their columns, which
// the database writes into spec or, where no number of tokens a second is the rate, as
// of 5/1m, in spec itself.
func (c *rulesCommand) changeLimit(r *rules.Rule, spec map[string]json.RawMessage) error {
	rate := c.rate
	if strings.Contains(rate, "/") {
		number, exact := ratePerSecond(rate)
		if !exact {
			return c.changeConfig(spec)
		}
		rate = number
	}
	if c.given("rate") {
		r.RatePerSecond = rate
	}
	if c.given("burst") {
		r.BurstCapacity = c.burst
	}
	return nil
}

// changeConfig sets the rate and the burst in the algorithm_config of a spec.
func (c *rulesCommand) changeConfig(spec map[string]json.RawMessage) error {
	config, err := jsonObject(spec["algorithm_config"])
	if err != nil {
		return fmt.Errorf("algorithm_config is no JSON object: %w", err)
	}
	delete(config, "rps")
	delete(config, "tokens_per_second")
	config["rate"] = textJSON(c.rate)
	switch {
	case !c.given("burst"):
	case json.Valid([]byte(c.burst)):
		config["burst"] = json.RawMessage(c.burst)
	default:
		config["burst"] = textJSON(c.burst) // such as 10s
	}
	if config["burst"] == nil {
		return unmet(fmt.Sprintf("--rate %s needs a burst: set --burst, too", c.rate))
	}
	spec["algorithm_config"], err = json.Marshal(config)
	return err
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

// textJSON is a text as JSON.
func textJSON(text string) json.RawMessage {
	data, _ := json.Marshal(text) // a string always marshals
	return data
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
