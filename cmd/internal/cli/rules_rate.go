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

// changeLimit sets the rate and the burst from the flags. It sets the columns, and the database copies them to
// spec. A rate such as 5/1m is not a decimal number of tokens per second, so changeLimit writes it to spec
// directly.
func (c *rulesCommand) changeLimit(r *rules.Rule, spec map[string]json.RawMessage) error {
	rate := c.rate
	if strings.Contains(rate, "/") {
		number, exact := ratePerSecond(rate)
		if !exact {
			return c.changeConfig(spec)
		}
		rate = number
	}
	if c.isSet("rate") {
		r.RatePerSecond = rate
	}
	if c.isSet("burst") {
		r.BurstCapacity = c.burst
	}
	return nil
}

// changeConfig sets the rate and the burst in the algorithm_config of a spec.
func (c *rulesCommand) changeConfig(spec map[string]json.RawMessage) error {
	config, err := parseObject(spec["algorithm_config"])
	if err != nil {
		return fmt.Errorf("algorithm_config is not a JSON object: %w", err)
	}
	delete(config, "rps")
	delete(config, "tokens_per_second")
	config["rate"] = textJSON(c.rate)
	switch {
	case !c.isSet("burst"):
	case json.Valid([]byte(c.burst)):
		config["burst"] = json.RawMessage(c.burst)
	default:
		config["burst"] = textJSON(c.burst) // the burst may be a duration such as 10s
	}
	if config["burst"] == nil {
		return unmetError(fmt.Sprintf("--rate %s needs a burst: set --burst, too", c.rate))
	}
	spec["algorithm_config"], err = json.Marshal(config)
	return err
}

// parseObject parses a JSON object. An empty text and null are empty objects.
func parseObject(text json.RawMessage) (object map[string]json.RawMessage, err error) {
	if len(text) > 0 {
		err = json.Unmarshal(text, &object)
	}
	if object == nil {
		object = map[string]json.RawMessage{}
	}
	return object, err
}

func textJSON(text string) json.RawMessage {
	data, _ := json.Marshal(text) // a string always marshals
	return data
}

// ratePerSecond converts a rate such as 60/1m to tokens per second. It is not exact if the number needs more than
// three decimals, such as 5/1m.
func ratePerSecond(text string) (number string, exact bool) {
	rate, err := bucket.ParseRate(text)
	if err != nil || rate.Tokens > bucket.MaxTokens/bucket.Tokens(time.Second/time.Microsecond) {
		return "", false // the flag has been checked before
	}
	tokens, per := int64(rate.Tokens)*int64(time.Second/time.Microsecond), int64(rate.Per/time.Microsecond)
	if tokens%per != 0 {
		return "", false
	}
	return bucket.Tokens(tokens / per).String(), true
}
