import CarillonCore
import GRDB

/// The steps of requests in one batch, inside a transaction. Reads their facts, and writes the decisions of ``RequestRules``.
final class RequestSteps {
    private let table: RequestTable
    private let rules = RequestRules()
    private var facts = RequestFacts()
    private var accepted: [RequestStep] = []

    init(_ db: Database, memory: RequestMemory) { table = RequestTable(db, memory: memory) }

    func readFacts(of steps: [RequestStep]) throws { try table.answer(rules.questions(for: steps), into: &facts) }

    /// - Parameter step: A step whose facts were read.
    func counts(_ step: RequestStep) -> Bool { rules.counts(step, knowing: facts) }

    /// Adds a step to the steps that ``write()`` writes.
    func accept(_ step: RequestStep) { accepted.append(step) }

    /// Writes the accepted steps, and clears them and all facts. Returns whether each step counted after the steps before it;
    /// otherwise nothing is written.
    ///
    /// - Throws: ``StoreFault`` if a request does not match its facts.
    func write() throws -> Bool {
        let (results, changes) = rules.decide(accepted, knowing: facts)
        guard results.allSatisfy({ $0 }) else { return false }
        try table.write(changes)
        // The facts do not match the changed rows any more.
        accepted = []
        facts = RequestFacts()
        return true
    }
}
