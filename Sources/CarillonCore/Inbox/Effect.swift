/// A change of a feature that is stored in one transaction with an append.
///
/// Each feature has a type for its effects, and a function of ``Effect`` for each of them. The rules of the inbox only
/// compare effects. A large effect hashes only the numbers that identify it.
package protocol FeatureEffect: Hashable, Sendable {}

/// A change that must be made in one transaction with an append. If the effect is outdated, nothing is appended.
package struct Effect: Sendable {
    package let value: any FeatureEffect

    package init(_ value: any FeatureEffect) { self.value = value }
}

extension Effect: Hashable {
    package static func == (one: Self, other: Self) -> Bool { one.value.isEqual(to: other.value) }

    package func hash(into hasher: inout Hasher) { value.hash(into: &hasher) }
}

extension FeatureEffect {
    fileprivate func isEqual(to other: any FeatureEffect) -> Bool { (other as? Self) == self }
}
