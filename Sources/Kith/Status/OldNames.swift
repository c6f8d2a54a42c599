public import KithCore

// For branches that are being merged; these go with the last of them.
public typealias NodeReport = NodeStatus
public typealias UsageReport = Usage
public typealias DeviceReport = NodeStatus.Device
public typealias AccountDevice = NodeStatus.Device
public typealias HiddenValue = HiddenEntry
public typealias RefusedTransaction = Refusal
extension Change { public typealias Reason = ChangeReason }
