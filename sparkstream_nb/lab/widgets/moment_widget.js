// A moment in a view of its own.

const create = createMoment;
