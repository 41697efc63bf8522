// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
)

// luaSymbols and luaWords are the replacements in Lua. A word of luaCalls changes only as the name of a called function.
var (
	luaSymbols = map[string]string{
		"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "~=", "~=": "==",
		"+": "-", "-": "+", "*": "/", "/": "*", "%": "*",
	}
	luaWords = map[string]string{"and": "or", "or": "and", "not": "", "true": "false", "false": "true"}
	luaCalls = map[string]string{"min": "max", "max": "min", "floor": "math.ceil"}
)

// sqlSymbols, sqlWords and sqlCalls are the same for SQL, in upper case.
var (
	sqlSymbols = map[string]string{
		"<": "<=", "<=": "<", ">": ">=", ">=": ">", "=": "<>", "<>": "=",
		"+": "-", "-": "+", "*": "/", "/": "*", "%": "*",
	}
	sqlWords = map[string]string{"AND": "OR", "OR": "AND", "NOT": "", "TRUE": "false", "FALSE": "true"}
	sqlCalls = map[string]string{
		"MIN": "max", "MAX": "min", "LEAST": "greatest", "GREATEST": "least", "FLOOR": "ceil", "CEIL": "floor",
	}
)

// luaMutants returns the mutants of a Lua script.
func luaMutants(file string, source []byte) []mutant {
	c := collector{file: file, source: source}
	tokens := scan(source, lua)
	function := ""
	for i, t := range tokens {
		if startsLine(source, t.from) { // functions of the scripts start and end at the margin
			switch {
			case t.value == "end":
				function = ""
			case t.value == "function":
				function = valueAt(tokens, i+1)
			case t.value == "local" && valueAt(tokens, i+1) == "function":
				function = valueAt(tokens, i+2)
			}
		}
		switch t.kind {
		case number:
			c.addNumber(function, t)
		case symbol:
			c.addSymbol(function, tokens, i, luaSymbols)
		case word:
			c.addWord(function, tokens, i, t.value, luaWords, luaCalls)
		}
	}
	return c.list()
}

// sqlMutants returns the mutants of the functions in an SQL file. A file without functions is one statement, and all
// of it is changed.
func sqlMutants(file string, source []byte) []mutant {
	c := collector{file: file, source: source}
	tokens := scan(source, sql)
	function, inside := "", !bytes.Contains(source, []byte("CREATE FUNCTION"))
	whole := inside
	for i, t := range tokens {
		if !whole && startsLine(source, t.from) && t.kind == word {
			switch {
			case t.value == "CREATE" && valueAt(tokens, i+1) == "FUNCTION":
				function, inside = valueAt(tokens, i+2), true
				if valueAt(tokens, i+3) == "." {
					function = valueAt(tokens, i+4)
				}
			case t.value == strings.ToUpper(t.value) && !continuesFunction[t.value]:
				function, inside = "", false
			}
		}
		if !inside {
			continue
		}
		switch t.kind {
		case number:
			c.addNumber(function, t)
		case symbol:
			c.addSymbol(function, tokens, i, sqlSymbols)
		case word:
			c.addWord(function, tokens, i, strings.ToUpper(t.value), sqlWords, sqlCalls)
			if strings.EqualFold(t.value, "NULL") && i > 0 && strings.EqualFold(tokens[i-1].value, "IS") {
				c.add(function, t.from, t.to, "NOT NULL", "NOT NULL")
			}
		}
	}
	return c.list()
}

// continuesFunction has the words that start a line inside a CREATE FUNCTION.
var continuesFunction = map[string]bool{
	"RETURNS": true, "RETURN": true, "LANGUAGE": true, "SET": true, "AS": true, "DECLARE": true, "BEGIN": true, "END": true,
}

func (c *collector) addNumber(function string, t scriptToken) {
	if other, ok := otherNumber(t.value); ok {
		c.add(function, t.from, t.to, other, other)
	}
}

func (c *collector) addSymbol(function string, tokens []scriptToken, i int, symbols map[string]string) {
	t := tokens[i]
	if !followsOperand(tokens, i) && t.value != "<" && t.value != ">" {
		return // a sign, or the * of count(*)
	}
	if isSign := t.value == "+" || t.value == "-"; isSign && valueAt(tokens, i+1) == "0" {
		return // + 0 converts a string to a number, and so does - 0
	}
	if other, ok := symbols[t.value]; ok {
		c.add(function, t.from, t.to, other, other)
	}
}

func (c *collector) addWord(function string, tokens []scriptToken, i int, value string, words, calls map[string]string) {
	t := tokens[i]
	if other, ok := words[value]; ok {
		c.add(function, t.from, t.to, other, other)
	}
	if other, ok := calls[value]; ok && valueAt(tokens, i+1) == "(" {
		c.add(function, t.from, t.to, other, other)
	}
}

// followsOperand reports whether the symbol at i stands between two operands. An operator in OPERATOR(pg_catalog.+)
// does, too.
func followsOperand(tokens []scriptToken, i int) bool {
	if i == 0 || valueAt(tokens, i+1) == ")" && tokens[i-1].value != "." {
		return false
	}
	switch last := tokens[i-1]; last.kind {
	case number, text:
		return true
	case word:
		return !beforeOperand[strings.ToUpper(last.value)]
	default:
		return last.value == ")" || last.value == "]" || last.value == "."
	}
}

// beforeOperand has the words that a sign may follow.
var beforeOperand = map[string]bool{
	"RETURN": true, "AND": true, "OR": true, "NOT": true, "IF": true, "ELSEIF": true, "ELSIF": true, "WHILE": true, "UNTIL": true,
	"THEN": true, "ELSE": true, "WHEN": true, "CASE": true, "SELECT": true, "WHERE": true, "BETWEEN": true, "IN": true, "DO": true,
}

func valueAt(tokens []scriptToken, i int) string {
	if i >= len(tokens) {
		return ""
	}
	return tokens[i].value
}

// startsLine reports whether a position is the first of its line.
func startsLine(source []byte, at int) bool { return at == 0 || source[at-1] == '\n' }
