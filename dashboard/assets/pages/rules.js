// SPDX-License-Identifier: Apache-2.0

import {h} from '../ui/dom.js';

export default {
	title: 'Rules',
	nav: 'rules',
	mount(root) {
		root.append(h('div', {class: 'empty'}, h('h2', null, 'Rules')));
	},
};
