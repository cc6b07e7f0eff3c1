/// The turns of a random test, which continues after its usual length until it has tried everything that it must try.
///
///     var turns = ScenarioTurns(6000)
///     while turns.next(unless: scenario.untried.isEmpty) { scenario.step() }
///     #expect(scenario.untried.isEmpty)
package struct ScenarioTurns {
    private static let mostTimes = 20

    private let usual: Int
    /// The number of turns that have begun.
    package private(set) var begun = 0

    package init(_ usual: Int) { self.usual = usual }

    /// Begins the next turn, and returns whether there is one. After 20 times the usual number there is none in any case.
    package mutating func next(unless isComplete: @autoclosure () -> Bool) -> Bool {
        guard begun < usual || begun < usual * Self.mostTimes && !isComplete() else { return false }
        begun += 1
        return true
    }

    /// Returns the names that were counted less often than they must be, in order.
    package static func untried(_ counted: [String: Int], least: [String: Int]) -> [String] {
        least.filter { counted[$0.key, default: 0] < $0.value }.keys.sorted()
    }
}
