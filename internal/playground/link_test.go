// SPDX-License-Identifier: Apache-2.0

package playground_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/playground"
)

// parseLink reads a link to the playground as state.js does, except pasted traces:
// .../dashboard/#/playground?lane=token_bucket,10/1s,capacity=50&phase=steady,rate=60,seconds=3.
func parseLink(link string) (in api.Play, err error) {
	_, query, ok := strings.Cut(link, "/dashboard/#/playground?")
	if !ok {
		return in, fmt.Errorf("%s is not a link to the playground", link)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return in, err
	}
	if id := values.Get("preset"); id != "" {
		i := slices.IndexFunc(playground.Presets(), func(p api.PlayPreset) bool { return p.ID == id })
		if i < 0 {
			return in, fmt.Errorf("%s: there is no preset %s", link, id)
		}
		return playground.Presets()[i].Input, nil
	}
	var lanes, phases []map[string]any
	for _, text := range values["lane"] {
		parts := strings.Split(text, ",")
		if len(parts) < 2 {
			return in, fmt.Errorf("%s: a lane has no rate", link)
		}
		tokens, per, _ := strings.Cut(parts[1], "/")
		lanes = append(lanes, fields(map[string]any{"algorithm": parts[0], "tokens": json.Number(tokens), "per": per}, parts[2:]))
	}
	for _, text := range values["phase"] {
		parts := strings.Split(text, ",")
		phases = append(phases, fields(map[string]any{"shape": parts[0]}, parts[1:]))
	}
	text, err := json.Marshal(map[string]any{"lanes": lanes, "traffic": map[string]any{"phases": phases, "retry": values.Get("retry") == "1"}})
	if err != nil {
		return in, err
	}
	return in, json.Unmarshal(text, &in)
}

// fields adds the parts name=value of a lane or a phase. Values are numbers where they look like numbers.
func fields(to map[string]any, parts []string) map[string]any {
	for _, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		if _, err := strconv.ParseFloat(value, 64); err == nil && name != "name" && name != "jitter" {
			to[name] = json.Number(value)
		} else {
			to[name] = value
		}
	}
	return to
}
