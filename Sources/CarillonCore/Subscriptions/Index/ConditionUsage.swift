/// The owner whose quota of an item's limits a condition counts against: the device's user, or the device if it has no user.
package struct ConditionOwner: Hashable, Sendable {
    /// The serial of a device, or a negative number that a user's name hashes to.
    fileprivate let number: Int64

    package init(device: DeviceSerial, user: UserID?) {
        number = user.map { -1 - Int64(truncatingIfNeeded: $0.hashValue & .max) } ?? device.rawValue
    }

    private init(number: Int64) { self.number = number }

    /// The owner of a condition or an expression that has several owners. It counts against no quota.
    package static let several = ConditionOwner(number: 0)
}

/// The usage of the limits of an item by conditions.
package struct ConditionUsage: Equatable, Sendable {
    /// Conditions with an alternative without an indexed comparison.
    package var unguarded = 0
    /// Conditions of which a part is evaluated while their indexed comparisons hold.
    package var guarded = 0
    package var constantBytes = 0
    /// Different compared expressions.
    package var compared = 0

    package static let none = ConditionUsage()

    mutating func add(_ other: ConditionUsage, times sign: Int) {
        unguarded += sign * other.unguarded
        guarded += sign * other.guarded
        constantBytes += sign * other.constantBytes
        compared += sign * other.compared
    }
}

/// The usage of the limits of an item by each owner alone.
///
/// When a second owner adds a condition or an expression that exists already, it counts for neither owner until its last
/// condition is removed.
struct ConditionUsages {
    private var usages: [ConditionOwner: ConditionUsage] = [:]
    /// Owners by the number of the compared expression.
    private var comparers: [Int: ConditionOwner] = [:]

    subscript(owner: ConditionOwner) -> ConditionUsage { usages[owner] ?? .none }

    /// Whether some condition compares an expression.
    func isCompared(_ expression: Int) -> Bool { comparers[expression] != nil }

    mutating func charge(_ owner: ConditionOwner, _ usage: ConditionUsage, times sign: Int = 1) {
        guard owner != .several, usage != .none else { return }
        var sum = self[owner]
        sum.add(usage, times: sign)
        usages[owner] = sum == .none ? nil : sum
    }

    mutating func compares(_ owner: ConditionOwner, _ expression: Int) {
        guard let known = comparers[expression] else {
            comparers[expression] = owner
            return charge(owner, ConditionUsage(compared: 1))
        }
        guard known != owner, known != .several else { return }
        charge(known, ConditionUsage(compared: 1), times: -1)
        comparers[expression] = .several
    }

    /// Removes an expression that no condition compares any more.
    mutating func forget(_ expression: Int) {
        guard let owner = comparers.removeValue(forKey: expression) else { return }
        charge(owner, ConditionUsage(compared: 1), times: -1)
    }
}
