use gripper_testkit as _;
