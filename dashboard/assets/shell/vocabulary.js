// SPDX-License-Identifier: Apache-2.0
//
// The server's names for actions, algorithms and reasons. Pages have no lists of their own. Pure.
//
//   learn(answer)      stores them from the response of v1/me: {actions, algorithms, reasons}
//   actions()          the actions of overrides, each with its texts and possible targets
//   actionOf(name)     an action; an unknown one uses its name for all texts
//   algorithms()       the algorithms of limits: [{name, label, reason, shape}]
//   algorithmOf(name)  an algorithm; an unknown one has no shape
//   reasons()          the reasons for denials

let words = {actions: [], algorithms: [], reasons: []};

export function learn({actions = [], algorithms = [], reasons = []}) {
	words = {actions, algorithms, reasons};
}

export function actions() {
	return words.actions;
}

export function actionOf(name) {
	return words.actions.find((a) => a.action === name) ?? {action: name, label: name, verb: name, count: name, made: `${name}:`, color: 'level'};
}

export function algorithms() {
	return words.algorithms;
}

export function algorithmOf(name) {
	return words.algorithms.find((a) => a.name === name) ?? {name, label: name, shape: ''};
}

export function reasons() {
	return words.reasons;
}
