/// The parameters that devices said last, as far as they are remembered: a poll that waits answers with what another poll of its device
/// said meanwhile.
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

    /// - Parameter version: Of the binding. An earlier one does not take the place of a later one.
    mutating func changed(_ binding: BindingSerial, to revision: String, version: Int64) {
        let slot = slot(of: binding)
        if let present = slots[slot], present.binding == binding, present.version > version { return }
        slots[slot] = Change(binding: binding, revision: revision, version: version)
    }

    /// The revision of a binding's parameters that were said later than `version` of the binding; nil where nothing is remembered.
    func last(of binding: BindingSerial, after version: Int64) -> String? {
        guard let change = slots[slot(of: binding)], change.binding == binding, change.version > version else { return nil }
        return change.revision
    }
}
