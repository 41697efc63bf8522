// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/dialect"
	"github.com/metehq/mete/internal/parse"
)

func reservedPattern() string {
	var words []string
	for _, word := range slices.Sorted(maps.Keys(reserved)) {
		any := ""
		for _, c := range word {
			any += "[" + strings.ToUpper(string(c)) + string(c) + "]"
		}
		words = append(words, any)
	}
	return "^(" + strings.Join(words, "|") + ")(:|$)"
}

const (
	numberPattern   = `^\+?[0-9.]+([eE][+-]?[0-9]+)?$`
	foreignPattern  = `[<>]|/:[A-Za-z_]` // templates of other routers
	durationPattern = `^([0-9.]+(ns|us|µs|μs|ms|s|m|h|d|w))+$`
)

// forms are the schemas of values that several fields share.
var forms = parse.Schema{
	"attribute": parse.Schema{
		"description": "A fact about a request: ip:address, ip:address/56, header:NAME, query:NAME, cookie:NAME, jwt:CLAIM, method, path, host, " +
			"or path:NAME of a template. Embedding programs supply other lower-case names.",
		"type": "string", "maxLength": maxAttributeBytes, "pattern": `^[A-Za-z][A-Za-z0-9._-]*(:.+)?$`, "not": parse.Schema{"pattern": reservedPattern()},
		"examples": []string{"ip:address", "header:x-api-key", "jwt:sub", "path", "method", "host"},
	},
	"amount": parse.Schema{
		"description": "A number of tokens above 0, exact to a thousandth.",
		"anyOf":       schemas{{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": numberPattern}}, "examples": []any{20, 0.5},
	},
	"amountOrNone": parse.Schema{
		"description": "A number of tokens, exact to a thousandth; 0 is none.",
		"anyOf":       schemas{{"type": "number", "minimum": 0}, {"type": "string", "pattern": numberPattern}},
	},
	"duration": parse.Schema{
		"description": "A duration: numbers with the units ns, us, ms, s, m, h, d or w.",
		"type":        "string", "pattern": durationPattern, "examples": []string{"100ms", "90s", "1h", "1d"},
	},
	"window": parse.Schema{
		"description": "A duration, or a calendar window.",
		"anyOf":       schemas{{"type": "string", "pattern": durationPattern}, parse.Word(calendarWords...)}, "examples": []string{"1m", "1d", "day", "month"},
	},
	"zone": parse.Schema{"type": "string", "pattern": `^[A-Za-z0-9_+/-]{1,64}$`, "examples": []string{"Europe/Berlin", "America/New_York", "UTC"}},
	"start": parse.Schema{
		"anyOf": schemas{{"type": "string", "pattern": durationPattern}, {"type": "string", "pattern": `^([01][0-9]|2[0-3]):[0-5][0-9]$`}}, "examples": []string{"7h", "07:00"},
	},
	"weekday": parse.Schema{"type": "string", "pattern": `^[A-Za-z]+$`, "examples": []string{"mon", "friday"}},
	"hours":   parse.Schema{"type": "string", "pattern": `^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-4]):[0-5][0-9]$`, "examples": []string{"09:00-17:00", "22:00-06:00"}},
	"startDay": parse.Schema{
		"anyOf":    schemas{{"type": "integer", "minimum": 1, "maximum": 28}, {"type": "string", "pattern": `^[A-Za-z]+$`}, {"type": "string", "pattern": `^[01][0-9]-[0-3][0-9]$`}},
		"examples": []any{5, "monday", "04-06"},
	},
	"extent": parse.Schema{
		"description": "A number of tokens, or the time that the rate takes to refill them.",
		"anyOf":       schemas{{"type": "number", "minimum": 0}, {"type": "string", "pattern": numberPattern}, {"type": "string", "pattern": durationPattern}},
		"examples":    []any{20, "300s"},
	},
	"instant": parse.Schema{"type": "string", "format": "date-time", "examples": []string{"2026-01-02T15:04:05Z"}},
	"mode": parse.Schema{
		"anyOf":    schemas{parse.Word("enforce", "shadow", "off"), {"type": "string", "pattern": `^\+?[0-9.]+([eE][+-]?[0-9]+)?%$`}},
		"examples": []string{"shadow", "25%"},
	},
	"dialects": parse.Either(parse.Word(dialect.Names[:]...), parse.ListOf(parse.Word(dialect.Names[:]...), 1, len(dialect.Names))),
	"jitter": parse.Schema{
		"anyOf":    schemas{{"const": 0}, {"type": "string", "pattern": `^([0-9]+%|0)$`}},
		"examples": []any{"50%", 0},
	},
	"percent": parse.Schema{
		"anyOf": schemas{{"type": "number", "minimum": 0, "maximum": 100}, {"type": "string", "pattern": numberPattern}}, "examples": []any{80},
	},
	"path": parse.Schema{
		"description": "A path, a prefix followed by *, or a template such as /users/{id}/orders or /files/{rest...}.",
		"type":        "string", "maxLength": maxMatchValueBytes, "not": parse.Schema{"pattern": foreignPattern},
	},
	"paths": parse.Either(parse.Ref("path"), parse.ListOf(parse.Ref("path"), 1, maxMatchValues)),
	"pathValue": parse.Either(parse.Ref("paths"), parse.Schema{
		"type": "object", "properties": parse.Schema{"not": parse.Ref("paths")}, "required": []string{"not"}, "additionalProperties": false,
	}),
	"scalar": parse.Schema{"type": []string{"string", "number", "boolean"}, "maxLength": maxMatchValueBytes},
	"values": parse.Either(parse.Ref("scalar"), parse.ListOf(parse.Ref("scalar"), 1, maxMatchValues)),
	"value": parse.Either(parse.Ref("values"), hasForm, parse.Schema{
		"type": "object", "properties": parse.Schema{"not": parse.Either(parse.Ref("values"), hasForm)}, "required": []string{"not"}, "additionalProperties": false,
	}),
	"match": parse.Either(parse.Ref("clauses"), parse.ListOf(parse.Ref("clauses"), 1, maxAlternatives)),
	"clauses": parse.Schema{
		"type": "object", "maxProperties": maxMatchClauses, "propertyNames": parse.Ref("attribute"), "additionalProperties": parse.Ref("value"),
		"patternProperties": parse.Schema{"^[Pp][Aa][Tt][Hh]$": parse.Ref("pathValue")},
		"examples":          []any{parse.Schema{"jwt:plan": "enterprise"}, parse.Schema{"path": "/v1/*", "method": []string{"GET", "HEAD"}}, parse.Schema{"ip:address": parse.Schema{"not": "10.0.0.0/8"}}},
	},
	"name": parse.Schema{"type": "string", "minLength": 1, "maxLength": MaxNameBytes, "pattern": `^[ -~]+$`},
	"attributes": parse.Schema{
		"type": "object", "propertyNames": parse.Ref("attribute"), "additionalProperties": parse.Schema{"type": []string{"string", "number", "boolean"}},
		"examples": []any{parse.Schema{"ip:address": "192.0.2.1", "path": "/v1/users"}},
	},
	"count":  parse.Either(parse.Schema{"type": "boolean"}, parse.Schema{"type": "integer", "minimum": 0}),
	"counts": parse.Either(parse.Schema{"type": "boolean"}, parse.Schema{"type": "integer", "minimum": 0}, parse.Schema{"type": "string"}, parse.Schema{"type": "array"}, parse.Schema{"type": "object"}),
}

// hasForm is a match value with has.
var hasForm = parse.Schema{
	"type": "object", "properties": parse.Schema{"has": parse.Ref("values")}, "required": []string{"has"}, "additionalProperties": false,
	"examples": []any{parse.Schema{"has": "admin"}},
}
