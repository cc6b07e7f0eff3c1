/// A bounded memory of the last parameters that devices reported. A waiting poll uses it to return parameters that another poll
/// of its device reported in the meantime.
struct ParameterChanges {
    private struct Change {
        var binding: BindingSerial
        var revision: String
        var version: Int64
    }

    private var slots = [Change?](repeating: nil, count: Self.slotCount)
    private static let slotCount = 1024

    private func slot(of binding: BindingSerial) -> Int {
        Int(UInt64(bitPattern: binding.rawValue) % UInt64(Self.slotCount))
    }

    /// - Parameter version: The version of the binding. An earlier version does not replace a later one.
    mutating func changed(_ binding: BindingSerial, to revision: String, version: Int64) {
        let slot = slot(of: binding)
        if let present = slots[slot], present.binding == binding, present.version > version { return }
        slots[slot] = Change(binding: binding, revision: revision, version: version)
    }

    /// Returns the revision of parameters that a binding reported after `version` of the binding; nil if none is remembered.
    func last(of binding: BindingSerial, after version: Int64) -> String? {
        guard let change = slots[slot(of: binding)], change.binding == binding, change.version > version else { return nil }
        return change.revision
    }
}
