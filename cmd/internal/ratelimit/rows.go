// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

func text(name string, to *string, def, about string) Row {
	return Row{Name: name, Form: "text", Default: def, About: about, read: func(v string) error {
		*to = v
		return nil
	}}
}

func boolean(name string, to *bool, def, about string) Row {
	return Row{Name: name, Form: "true or false", Default: def, About: about, read: func(v string) (err error) {
		if *to, err = strconv.ParseBool(v); err != nil {
			return errors.New("must be true or false")
		}
		return nil
	}}
}

func port(name string, to *int, def, about string) Row {
	r := number(name, to, def, 0, 1<<16-1, about)
	r.Form = "port"
	return r
}

func number(name string, to *int, def string, least, most int, about string) Row {
	return Row{Name: name, Form: "number", Default: def, About: about, read: func(v string) (err error) {
		if *to, err = strconv.Atoi(v); err != nil || *to < least || *to > most {
			return fmt.Errorf("must be a whole number from %d to %d", least, most)
		}
		return nil
	}}
}

func fraction(name string, to *float64, def, about string) Row {
	return Row{Name: name, Form: "number from 0 to 1", Default: def, About: about, read: func(v string) (err error) {
		if *to, err = strconv.ParseFloat(v, 64); err != nil || !(*to >= 0 && *to <= 1) {
			return errors.New("must be a number from 0 to 1")
		}
		return nil
	}}
}

func duration(name string, to *time.Duration, def, about string) Row {
	return Row{Name: name, Form: "duration", Default: def, About: about, read: func(v string) (err error) {
		if *to, err = time.ParseDuration(v); err != nil || *to < 0 {
			return errors.New("must be a duration such as 500ms, 10s or 24h")
		}
		return nil
	}}
}

// word returns a row with a choice of words. The case of letters does not matter.
func word(name string, to *string, def, about string, words ...string) Row {
	return Row{Name: name, Form: "`" + strings.Join(words, "`, `") + "`", Default: def, About: about, read: func(v string) error {
		i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(v, w) })
		if i < 0 {
			return fmt.Errorf("must be %s", strings.Join(words, " or "))
		}
		*to = words[i]
		return nil
	}}
}

func pairs(name string, to *map[string]string, about string) Row {
	return Row{Name: name, Form: "key:value, …", About: about, read: func(v string) error {
		*to = map[string]string{}
		for pair := range strings.SplitSeq(v, ",") {
			key, value, ok := strings.Cut(strings.TrimSpace(pair), ":")
			if !ok || key == "" {
				return errors.New("must be key:value,key:value")
			}
			(*to)[key] = value
		}
		return nil
	}}
}

func unused(name, effect string) Row { return Row{Name: name, Effect: effect} }

// silent returns a row that is ignored without a warning, because the service behaves as its user expects.
func silent(name, effect string) Row { return Row{Name: name, Effect: effect, isQuiet: true} }
