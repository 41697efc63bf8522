// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// set creates or replaces overrides, one after the other.
func (c *overrideCommand) set(ctx context.Context) error {
	list, err := c.buildOverrides()
	if err != nil {
		return err
	}
	for i, o := range list {
		if c.file != "" {
			c.subject = c.file + ": "
		}
		if len(list) > 1 {
			c.subject += fmt.Sprintf("override %d: ", i+1)
		}
		put := c.client.PutOverrideJSON
		if c.local {
			put = c.client.PutLocalOverrideJSON
		}
		made, err := put(ctx, o)
		if err != nil {
			return err
		}
		if err := c.printSet(&made); err != nil {
			return err
		}
	}
	return nil
}

func (c *overrideCommand) remove(ctx context.Context, ids []string) error {
	var removed struct {
		Removed []string `json:"removed"`
	}
	for _, id := range ids {
		c.subject = fmt.Sprintf("%q: ", id)
		if err := c.client.RemoveOverride(ctx, id, c.author, c.reason); err != nil {
			return err
		}
		removed.Removed = append(removed.Removed, id)
		if c.format == "json" {
			continue
		}
		if _, err := fmt.Fprintf(c.std.Out, "removed %s\n", cellText(id)); err != nil {
			return err
		}
	}
	if c.format == "json" {
		return writeJSON(c.std.Out, removed)
	}
	return nil
}

// buildOverrides returns the overrides from the flags or from --file.
func (c *overrideCommand) buildOverrides() ([]json.RawMessage, error) {
	if c.file != "" {
		return c.readFile()
	}
	o := api.Override{ID: c.id, Action: c.action, Rules: c.rules, Key: c.key, Reason: c.reason, Author: c.author}
	var err error
	if o.ExpiresAt, err = parseExpiry(c.expires, time.Now()); err != nil {
		return nil, err
	}
	if o.Match, err = buildMatch(c.match); err != nil {
		return nil, err
	}
	if c.all {
		o.Match = json.RawMessage(`{}`)
	}
	if err := c.addLimit(&o); err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	return []json.RawMessage{text}, err
}

// addLimit copies the limit from the flags to o.
func (c *overrideCommand) addLimit(o *api.Override) error {
	config := map[string]json.RawMessage{}
	for name, value := range map[string]string{"rps": c.rps, "rate": c.rate, "burst": c.burst} {
		if value == "" {
			continue
		}
		text := json.RawMessage(value)
		var number json.Number
		if json.Unmarshal(text, &number) != nil || name == "rate" { // the server reports invalid numbers
			text, _ = json.Marshal(value) // a string always marshals
		}
		config[name] = text
	}
	if len(config) == 0 {
		return nil
	}
	o.Algorithm = "token_bucket"
	var err error
	o.Config, err = json.Marshal(config)
	return err
}

func parseExpiry(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	d, err := bucket.ParseDuration(text)
	if err != nil || d <= 0 {
		return time.Time{}, fmt.Errorf("--expires: %q is not a time: write 2h or 3d from now, or 2026-01-02T15:04:05Z", text)
	}
	return now.Add(d).UTC().Truncate(time.Second), nil
}

// buildMatch returns the match from the flags, or nil.
func buildMatch(flags []string) (json.RawMessage, error) {
	if len(flags) == 0 {
		return nil, nil
	}
	values := map[string][]string{}
	for _, f := range flags {
		name, value, found := strings.Cut(f, "=")
		if !found {
			return nil, fmt.Errorf("--match: %q is not NAME=VALUE, such as header:x-api-key=k1", f)
		}
		attribute, err := policy.ParseAttribute(name)
		if err != nil {
			return nil, fmt.Errorf("--match: %w", trimPackage(err))
		}
		values[attribute.String()] = append(values[attribute.String()], value)
	}
	match := map[string]any{}
	for name, list := range values {
		match[name] = list
		if len(list) == 1 {
			match[name] = list[0]
		}
	}
	return json.Marshal(match)
}

// readFile returns the overrides in --file: one override, a list, or an object with a list named overrides.
func (c *overrideCommand) readFile() ([]json.RawMessage, error) {
	var data []byte
	var err error
	name := c.file
	if name == "-" {
		data, err = policyyaml.ReadFrom(c.std.In, "standard input")
	} else {
		data, err = policyyaml.Read(name)
	}
	if err != nil {
		return nil, err
	}
	if data, err = policyyaml.Raw(name, data); err != nil {
		return nil, err
	}
	list, err := parseOverrides(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range list {
		list[i] = addAuthor(list[i], c.author)
	}
	return list, nil
}

// addAuthor sets the author of an override that has none. It keeps all other bytes for the server to validate.
func addAuthor(override json.RawMessage, author string) json.RawMessage {
	var members map[string]json.RawMessage
	text, isObject := bytes.CutSuffix(bytes.TrimSpace(override), []byte("}"))
	if err := json.Unmarshal(override, &members); err != nil || !isObject || len(members) == 0 || members["author"] != nil {
		return override
	}
	quoted, err := json.Marshal(author)
	if err != nil {
		return override
	}
	return slices.Concat(text, []byte(`,"author":`), quoted, []byte("}"))
}

func parseOverrides(data []byte) ([]json.RawMessage, error) {
	var list []json.RawMessage
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		err := json.Unmarshal(data, &list)
		return list, notOverridesError(err)
	}
	var object map[string]json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&object); err != nil {
		return nil, notOverridesError(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected text after the override")
	}
	inner, ok := object["overrides"]
	if !ok {
		if object["action"] == nil && (object["rules"] != nil || object["policies"] != nil) {
			return nil, errors.New("this is a policy, not an override: an override has an action")
		}
		return []json.RawMessage{data}, nil
	}
	if len(object) > 1 {
		return nil, errors.New("a file with overrides must not contain other parts of a policy")
	}
	err := json.Unmarshal(inner, &list)
	return list, notOverridesError(err)
}

func notOverridesError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the file is neither an override nor a list of overrides: %w", err)
}
